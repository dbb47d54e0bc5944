// The processes that train a model together, like torch.distributed's process group. CPU tensors
// are sent with Gloo, GPU tensors with NCCL. Every rank must make the same calls in the same order.
//
//   RankGroup ranks(*ranks_from_environment());         // torchrun's, srun's
//   ranks.broadcast(state_tensors(*model));             // all start as rank 0 does
//   GradientSync sync(ranks, optimizer.parameters());
//
// A rank that ends with an error publishes the reason with fail(). A rank that is killed or hangs
// is detected by its missing heartbeat. In both cases calls on the other ranks throw an Error with
// the rank and the reason. A process whose call hangs is ended with that message within a minute.
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
  std::chrono::seconds join_timeout{300};  // for all ranks to connect
  // Must exceed the time a rank may work alone, e.g. to write a checkpoint. Dead ranks are detected
  // earlier, by their heartbeat.
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

  // Send rank 0's value to all ranks; tensors are overwritten in place.
  void broadcast(const NamedTensors& tensors);
  std::int64_t broadcast(std::int64_t value);
  std::string broadcast(const std::string& text);
  void sum(torch::Tensor& tensor);  // in place
  // Replaces each value by its mean over the ranks. All ranks must pass the same names.
  void average(Logs& logs);
  std::int64_t largest(std::int64_t value);  // maximum over the ranks
  // All-gather: one tensor per rank, all of the same size.
  std::vector<torch::Tensor> gather(const torch::Tensor& tensor);
  void barrier();

  // An asynchronous all-reduce, in a process group of its own: the calls above may run in between.
  // On the CPU the ranks' values are added in rank order, so the result is bit-identical to that of
  // a single process that adds the same values one after the other.
  struct Sum {
    torch::Tensor tensor;  // contiguous, one dimension, size divisible by world()
    torch::Tensor parts;   // CPU only: from every rank, the part that this rank adds up
    c10::intrusive_ptr<c10d::Work> work;
  };
  void start(Sum& sum);   // sends this rank's values
  void add_up(Sum& sum);  // waits for the other ranks' values, adds them, sends the result
  void finish(Sum& sum);  // waits until `tensor` holds the sum

  // Tells the other ranks that this rank ends because of `reason`. Never throws.
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
  // Gradients have their own groups, so that other calls may run while gradients are being sent.
  c10::intrusive_ptr<c10d::Backend> control_, gradients_, device_, device_gradients_;
  bool lost_ = false;
};

}  // namespace millrace
