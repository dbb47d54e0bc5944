// Adds gradients up over ranks while the backward pass still runs; whoever wants their mean scales
// the losses. Parameters are gathered in buckets, the last first, because backward reaches them so;
// a bucket is sent as soon as its last gradient is there. What got a gradient on some ranks only
// counts as zero on the others; what got none anywhere keeps none.
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
  std::size_t first_bucket_bytes = std::size_t{1} << 20;  // small, so that sending begins early
  std::size_t bucket_bytes = std::size_t{8} << 20;
};

class GradientSync {
 public:
  GradientSync(RankGroup& ranks, const std::vector<torch::Tensor>& parameters,
               const GradientSyncOptions& options = {});
  ~GradientSync();
  GradientSync(const GradientSync&) = delete;
  GradientSync& operator=(const GradientSync&) = delete;

  // One backward pass follows, the last before finish().
  void begin();
  void finish();
  std::size_t buckets() const { return buckets_.size(); }
  // How many buckets were on their way before finish() was called; for tests.
  std::size_t sent_early() const { return sent_early_; }

 private:
  struct Member {
    torch::Tensor parameter;
    torch::Tensor view;  // of its bucket's memory
    bool ready = false;
  };
  struct Bucket {
    std::vector<Member> members;
    // Its tensor: all gradients, then one number a member: on how many ranks it has one.
    RankGroup::Sum sum;
    std::int64_t flags = 0;  // where those numbers begin
    std::size_t missing = 0;
  };
  class Hook;

  void allocate(Bucket& bucket);
  void arrived(std::size_t bucket, std::size_t member);
  void fill(Bucket& bucket, std::size_t member);
  void send_complete_ones();

  RankGroup& ranks_;
  std::vector<Bucket> buckets_;
  std::size_t next_ = 0;  // the first that is not sent; all ranks send in the same order
  std::size_t sent_early_ = 0;
  bool active_ = false;
};

}  // namespace millrace
