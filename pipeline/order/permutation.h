// A shuffle that needs no memory: where position p of an epoch lands is a pure function of
// (seed, epoch, p). A data set of 10^9 samples is shuffled in no time and no space.
//
//   Permutation order(dataset.size(), seed, epoch);
//   std::int64_t first = order(0);
#pragma once

#include <array>
#include <cstdint>

namespace millrace {

class Permutation {
 public:
  Permutation(std::int64_t size, std::uint64_t seed, std::int64_t epoch);

  std::int64_t size() const { return static_cast<std::int64_t>(size_); }
  // `position` is in [0, size); so is the result, and no two positions share one.
  std::int64_t operator()(std::int64_t position) const;

 private:
  std::uint64_t scramble(std::uint64_t value) const;

  std::uint64_t size_;
  int low_bits_;
  std::uint64_t low_mask_;
  std::uint64_t high_mask_;
  std::array<std::uint64_t, 8> round_keys_;
};

}  // namespace millrace
