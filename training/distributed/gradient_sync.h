// All-reduces gradients in buckets while the backward pass still runs, like
// DistributedDataParallel. The result is the sum over the ranks; for the mean, scale the loss.
// Buckets are filled from the last parameter to the first, the order of the backward pass, and sent
// when complete. A parameter with a gradient on only some ranks counts as zero on the others;
// without any it keeps none.
//
//   GradientSync sync(ranks, optimizer.parameters());
//   (loss_of(first) * scale).backward();              // micro-batches before the last stay here
//   sync.begin();
//   (loss_of(last) * scale).backward();               // sent as it goes
//   sync.finish();                                    // every rank has the sums
#pragma once

#include <millrace/training/distributed/rank_group.h>

#include <cstddef>
#include <vector>

#include <torch/types.h>

namespace millrace {

struct GradientSyncOptions {
  std::size_t first_bucket_bytes = std::size_t{1} << 20;  // small, so that sending starts early
  std::size_t bucket_bytes = std::size_t{8} << 20;
};

class GradientSync {
 public:
  GradientSync(RankGroup& ranks, const std::vector<torch::Tensor>& parameters,
               const GradientSyncOptions& options = {});
  ~GradientSync();
  GradientSync(const GradientSync&) = delete;
  GradientSync& operator=(const GradientSync&) = delete;

  // Call before the last micro-batch of a step; exactly one backward pass may follow before
  // finish().
  void begin();
  // Waits until every rank has the sums in grad().
  void finish();
  std::size_t buckets() const { return buckets_.size(); }
  // Number of buckets sent before finish() was called; for tests.
  std::size_t sent_early() const { return sent_early_; }

 private:
  struct Member {
    torch::Tensor parameter;
    torch::Tensor view;  // its part of the bucket's tensor
    bool ready = false;
  };
  struct Bucket {
    std::vector<Member> members;
    // The tensor holds all gradients, then a flag per member: 1 if it has a gradient. The sum of a
    // flag is the number of ranks with a gradient.
    RankGroup::Sum sum;
    std::int64_t flags = 0;   // offset of the flags
    std::size_t missing = 0;  // number of members whose gradient is not complete
  };
  class Hook;

  void allocate(Bucket& bucket);
  void arrived(std::size_t bucket, std::size_t member);
  void fill(Bucket& bucket, std::size_t member);
  void send_complete_ones();

  RankGroup& ranks_;
  std::vector<Bucket> buckets_;
  std::size_t next_ = 0;  // the first unsent bucket; all ranks must send in the same order
  std::size_t sent_early_ = 0;
  bool active_ = false;
};

}  // namespace millrace
