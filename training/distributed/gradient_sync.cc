#include <millrace/pipeline/base/error.h>
#include <millrace/training/device/torch_api.h>
#include <millrace/training/distributed/gradient_sync.h>

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

namespace millrace {

// Called on autograd's thread when a parameter's gradient has been accumulated.
class GradientSync::Hook : public torch::autograd::PostAccumulateGradHook {
 public:
  Hook(GradientSync& sync, std::size_t bucket, std::size_t member)
      : sync_(sync), bucket_(bucket), member_(member) {}
  void operator()(const torch::autograd::Variable& /*parameter*/) override {
    if (sync_.active_) sync_.arrived(bucket_, member_);
  }

 private:
  GradientSync& sync_;
  std::size_t bucket_, member_;
};

GradientSync::GradientSync(RankGroup& ranks, const std::vector<torch::Tensor>& parameters,
                           const GradientSyncOptions& options)
    : ranks_(ranks) {
  std::size_t room = 0;
  for (auto parameter = parameters.rbegin(); parameter != parameters.rend(); ++parameter) {
    const std::size_t bytes = parameter->nbytes();
    const bool fits =
        !buckets_.empty() && bytes <= room &&
        buckets_.back().members[0].parameter.options().type_equal(parameter->options());
    if (!fits) {
      room = buckets_.empty() ? options.first_bucket_bytes : options.bucket_bytes;
      buckets_.emplace_back();
    }
    room -= std::min(room, bytes);
    buckets_.back().members.push_back({.parameter = *parameter, .view = {}});
  }
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    allocate(buckets_[b]);
    for (std::size_t m = 0; m < buckets_[b].members.size(); ++m) {
      torch::autograd::impl::set_post_acc_grad_hooks(buckets_[b].members[m].parameter,
                                                     std::make_unique<Hook>(*this, b, m));
    }
  }
}

GradientSync::~GradientSync() {
  for (Bucket& bucket : buckets_) {
    for (Member& member : bucket.members) {
      torch::autograd::impl::set_post_acc_grad_hooks(member.parameter, nullptr);
    }
  }
}

void GradientSync::allocate(Bucket& bucket) {
  for (const Member& member : bucket.members) bucket.flags += member.parameter.numel();
  const std::int64_t world = ranks_.world();
  const auto size = bucket.flags + static_cast<std::int64_t>(bucket.members.size());
  bucket.sum.tensor = torch::zeros({(size + world - 1) / world * world},
                                   bucket.members[0].parameter.options().requires_grad(false));
  std::int64_t at = 0;
  for (Member& member : bucket.members) {
    const std::int64_t count = member.parameter.numel();
    member.view = bucket.sum.tensor.narrow(0, at, count).view(member.parameter.sizes());
    at += count;
  }
}

void GradientSync::begin() {
  next_ = 0;
  sent_early_ = 0;
  for (Bucket& bucket : buckets_) {
    bucket.missing = bucket.members.size();
    for (Member& member : bucket.members) member.ready = false;
  }
  active_ = true;
}

void GradientSync::arrived(std::size_t number, std::size_t member) {
  Bucket& bucket = buckets_[number];
  if (bucket.members[member].ready) {
    active_ = false;
    throw Error("a stage may run backward only once in the last micro-batch of a step")
        .stage("ranks")
        .kind(ErrorKind::usage);
  }
  fill(bucket, member);
  const std::size_t before = next_;
  send_complete_ones();
  sent_early_ += next_ - before;
}

void GradientSync::fill(Bucket& bucket, std::size_t number) {
  torch::NoGradGuard no_grad;
  Member& member = bucket.members[number];
  const torch::Tensor& gradient = member.parameter.grad();
  bucket.sum.tensor.narrow(0, bucket.flags + static_cast<std::int64_t>(number), 1)
      .fill_(gradient.defined() ? 1 : 0);
  if (gradient.defined()) {
    member.view.copy_(gradient);
  } else {
    member.view.zero_();
  }
  member.ready = true;
  --bucket.missing;
}

void GradientSync::send_complete_ones() {
  for (; next_ < buckets_.size() && buckets_[next_].missing == 0; ++next_) {
    ranks_.start(buckets_[next_].sum);
  }
}

void GradientSync::finish() {
  active_ = false;
  for (Bucket& bucket : buckets_) {
    for (std::size_t m = 0; m < bucket.members.size(); ++m) {
      if (!bucket.members[m].ready) fill(bucket, m);
    }
  }
  send_complete_ones();
  for (Bucket& bucket : buckets_) ranks_.add_up(bucket.sum);
  for (Bucket& bucket : buckets_) {
    ranks_.finish(bucket.sum);
    const auto count = static_cast<std::int64_t>(bucket.members.size());
    const torch::Tensor uses =
        bucket.sum.tensor.narrow(0, bucket.flags, count).to(torch::kCPU, torch::kFloat64);
    for (std::int64_t m = 0; m < count; ++m) {
      Member& member = bucket.members[static_cast<std::size_t>(m)];
      // The gradient is a view into the bucket. It stays valid until the next begin().
      if (uses.data_ptr<double>()[m] > 0) member.parameter.mutable_grad() = member.view;
    }
  }
}

}  // namespace millrace
