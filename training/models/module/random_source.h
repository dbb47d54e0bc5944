// The random numbers that a model draws while it runs. They come from torch's generator, in the
// order in which the Python models draw theirs, or from a recording, so that a test can feed a
// model the very numbers that Python drew.
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
  // Replays tensors in this order; each is (name, values), the name being for messages.
  explicit Draws(std::vector<std::pair<std::string, torch::Tensor>> recorded)
      : recorded_(std::move(recorded)), replays_(true) {}

  // From here on from a generator of its own, as if it were new, until the next call.
  void reseed(std::uint64_t seed);

  // torch.randn, on the CPU.
  torch::Tensor normal(torch::IntArrayRef shape);
  // torch.rand, or a tensor's uniform_(0, 1).
  torch::Tensor uniform(torch::IntArrayRef shape);
  // torch.randperm.
  torch::Tensor permutation(std::int64_t size);
  // torch.randint from 0 below `end`.
  torch::Tensor integers(std::int64_t end, torch::IntArrayRef shape);
  // Python's random.randrange(begin, end).
  std::int64_t integer(std::int64_t begin, std::int64_t end);
  bool replays() const { return replays_; }

  // How many recorded tensors have not been asked for.
  std::size_t left() const { return recorded_.size() - next_; }

 private:
  torch::Tensor replay(torch::IntArrayRef shape);

  std::vector<std::pair<std::string, torch::Tensor>> recorded_;
  std::size_t next_ = 0;
  bool replays_ = false;
  std::optional<at::Generator> own_{};
};

}  // namespace millrace
