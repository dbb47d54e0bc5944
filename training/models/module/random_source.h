// The random numbers of a model. They come from torch's generator, in the order in which the Python
// package draws them, or from a recording: tests feed a model the numbers that Python drew.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <torch/types.h>

namespace millrace {

class Draws {
 public:
  Draws() = default;
  // Replays these (name, values) tensors in order. Names appear in error messages only.
  explicit Draws(std::vector<std::pair<std::string, torch::Tensor>> recorded)
      : recorded_(std::move(recorded)), replays_(true) {}

  // From now on draws from an own generator with this seed instead of torch's default generator.
  void reseed(std::uint64_t seed);

  // torch.randn, on the CPU.
  torch::Tensor normal(torch::IntArrayRef shape);
  // torch.rand, or a tensor's uniform_(0, 1).
  torch::Tensor uniform(torch::IntArrayRef shape);
  // torch.randperm.
  torch::Tensor permutation(std::int64_t size);
  // torch.randint(0, end, shape).
  torch::Tensor integers(std::int64_t end, torch::IntArrayRef shape);
  // Python's random.randrange(begin, end).
  std::int64_t integer(std::int64_t begin, std::int64_t end);
  bool replays() const { return replays_; }

  // Number of recorded tensors that have not been drawn.
  std::size_t left() const { return recorded_.size() - next_; }

 private:
  torch::Tensor replay(torch::IntArrayRef shape);

  std::vector<std::pair<std::string, torch::Tensor>> recorded_;
  std::size_t next_ = 0;
  bool replays_ = false;
  std::optional<at::Generator> generator_{};
};

}  // namespace millrace
