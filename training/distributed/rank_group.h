// The processes that train one model together. Tensors on the CPU travel over Gloo, tensors on a
// GPU over NCCL. Every rank must make the same calls in the same order.
//
//   RankGroup ranks(*ranks_from_environment());         // torchrun's, srun's
//   ranks.broadcast(state_tensors(model));              // all start as rank 0 does
//   GradientSync sync(ranks, optimizer.parameters());
//
// A rank that ends with an error tells the others why (`fail`); one that is killed or falls silent
// is found out. Either way the others' calls throw an Error that names the rank and the reason,
// or, if they hang, their process is ended with that line: within a minute.
#pragma once

#include <millrace/training/checkpoint/tensors.h>
#include <millrace/training/device/accelerator.h>
#include <millrace/training/distributed/rank_store.h>
#include <millrace/training/tracking/tracker.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/types.h>

namespace millrace {

class RankWatch;

struct RankGroupOptions {
  std::chrono::seconds join_timeout{300};  // for all ranks to be there
  // Longer than any rank may be busy alone, e.g. with writing a checkpoint: death is found out
  // otherwise.
  std::chrono::seconds timeout{1800};
  Accelerator* accelerator = nullptr;  // for tensors on a GPU; must outlive the group
};

class RankGroup {
 public:
  explicit RankGroup(const Ranks& ranks, const RankGroupOptions& options = {});
  ~RankGroup();
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;

  int rank() const { return ranks_.rank; }
  int world() const { return ranks_.world; }
  bool first() const { return ranks_.rank == 0; }

  // From rank 0, in place.
  void broadcast(const NamedTensors& tensors);
  std::int64_t broadcast(std::int64_t value);
  std::string broadcast(const std::string& text);
  void sum(torch::Tensor& tensor);  // in place
  // Means over the ranks; all must have the same names.
  void average(Logs& logs);
  std::int64_t largest(std::int64_t value);
  // One tensor a rank, all of the same size.
  std::vector<torch::Tensor> gather(const torch::Tensor& tensor);
  void barrier();

  // A sum that runs beside other work, in a group of its own: what is called above may come in
  // between. On the CPU it is added up in the order of the ranks, so that it has the very bits that
  // one process gets which adds the same numbers one after the other.
  struct Sum {
    torch::Tensor tensor;  // contiguous, [a multiple of world]
    torch::Tensor parts;   // on the CPU: of all ranks, what this rank adds up
    c10::intrusive_ptr<c10d::Work> work;
  };
  void start(Sum& sum);
  void add_up(Sum& sum);  // when the numbers are there; then
  void finish(Sum& sum);  // every rank has the sum

  // This rank ends because of `reason`: the others are told. Never throws.
  void fail(const std::string& reason);

 private:
  c10d::Backend& group_of(const torch::Tensor& tensor);
  void wait(const c10::intrusive_ptr<c10d::Work>& work);
  c10::intrusive_ptr<c10d::Backend> make_group(const char* name);
  [[noreturn]] void lost(const std::string& symptom);

  Ranks ranks_;
  RankGroupOptions options_;
  c10::intrusive_ptr<c10d::Store> store_;
  std::unique_ptr<RankWatch> watch_;
  // Gradients have one of their own, so that they may be under way while others talk.
  c10::intrusive_ptr<c10d::Backend> control_, gradients_, device_, device_gradients_;
  bool lost_ = false;
};

}  // namespace millrace
