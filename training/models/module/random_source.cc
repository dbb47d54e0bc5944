#include <millrace/pipeline/base/error.h>
#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/module/random_source.h>

#include <ATen/CPUGeneratorImpl.h>
#include <c10/util/StringUtil.h>

namespace millrace {

torch::Tensor Draws::replay(torch::IntArrayRef shape) {
  if (next_ == recorded_.size()) {
    throw Error(
        c10::str("the model asked for more random tensors than the ", next_, " that are recorded"));
  }
  const auto& [name, values] = recorded_[next_++];
  if (values.sizes() != shape) {
    throw Error(c10::str("the model asked for random numbers of shape ", shape,
                         ", but the recorded ", name, " has shape ", values.sizes()));
  }
  return values;
}

void Draws::reseed(std::uint64_t seed) {
  if (!replays_) generator_ = at::detail::createCPUGenerator(seed);
}

torch::Tensor Draws::normal(torch::IntArrayRef shape) {
  return replays_ ? replay(shape) : torch::randn(shape, generator_);
}

torch::Tensor Draws::uniform(torch::IntArrayRef shape) {
  return replays_ ? replay(shape) : torch::rand(shape, generator_);
}

torch::Tensor Draws::permutation(std::int64_t size) {
  return replays_ ? replay({size}) : torch::randperm(size, generator_, torch::kInt64);
}

torch::Tensor Draws::integers(std::int64_t end, torch::IntArrayRef shape) {
  return replays_ ? replay(shape) : torch::randint(0, end, shape, generator_, torch::kInt64);
}

std::int64_t Draws::integer(std::int64_t begin, std::int64_t end) {
  if (replays_) return replay({}).item<std::int64_t>();
  return torch::randint(begin, end, {1}, generator_, torch::kInt64).item<std::int64_t>();
}

}  // namespace millrace
