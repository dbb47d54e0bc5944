// A shuffle without memory: the sample at position p of an epoch is a pure function of
// (seed, epoch, p). So 10^9 samples are shuffled without a table.
//
//   Permutation order(1000, /*seed=*/42, /*epoch=*/0);
//   std::int64_t first = order(0);
#pragma once

#include <array>
#include <cstdint>

namespace millrace {

class Permutation {
 public:
  Permutation(std::int64_t size, std::uint64_t seed, std::int64_t epoch);

  std::int64_t size() const { return static_cast<std::int64_t>(size_); }
  // Maps [0, size) to [0, size), one to one.
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
