// The only random generator. A stream is keyed by (seed, epoch, index, stage) and nothing else, so
// a random choice does not depend on threads, prefetch or earlier choices.
//
//   Random random(/*seed=*/42, /*epoch=*/0, /*index=*/7, "flip");
//   bool flipped = random.uniform() < 0.5;
//
// The engine is Philox 4x32 with 10 rounds: it maps a counter to 128 random bits and shares no
// state between streams.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

namespace millrace {

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key);

// A 64-bit hash of two words; the key schedule of Random and Permutation.
std::uint64_t mix(std::uint64_t a, std::uint64_t b);

class Random {
 public:
  using result_type = std::uint32_t;

  Random(std::uint64_t seed, std::int64_t epoch, std::int64_t index, std::string_view stage);

  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return std::numeric_limits<result_type>::max(); }
  result_type operator()();

  // Uniform in [0, 1), with 53 random bits.
  double uniform();
  // Uniform in [0, bound), without bias. `bound` is at least 1.
  std::int64_t below(std::int64_t bound);

 private:
  std::array<std::uint32_t, 4> counter_;
  std::array<std::uint32_t, 2> key_;
  std::array<std::uint32_t, 4> block_{};
  int used_ = 4;
};

// The same result as torch.randperm(n, generator=torch.Generator().manual_seed(seed)).
std::vector<std::int64_t> torch_randperm(std::int64_t n, std::uint64_t seed);

}  // namespace millrace
