#include <millrace/pipeline/base/random.h>
#include <millrace/pipeline/order/permutation.h>

#include <algorithm>
#include <bit>

namespace millrace {

// A Feistel network permutes the smallest power of two that contains the range. A result outside
// the range is permuted again ("cycle walking") until it is inside, less than twice on average. The
// network has at least 64 values, since one over one or two bits mixes poorly.
Permutation::Permutation(std::int64_t size, std::uint64_t seed, std::int64_t epoch)
    : size_(static_cast<std::uint64_t>(std::max<std::int64_t>(size, 0))) {
  int bits = std::max(6, static_cast<int>(std::bit_width(size_ > 0 ? size_ - 1 : 0)));
  low_bits_ = bits / 2;
  low_mask_ = (std::uint64_t{1} << low_bits_) - 1;
  high_mask_ = (std::uint64_t{1} << (bits - low_bits_)) - 1;
  std::uint64_t key = mix(seed, static_cast<std::uint64_t>(epoch));
  for (std::size_t round = 0; round < round_keys_.size(); ++round) {
    round_keys_[round] = mix(key, round);
  }
}

std::uint64_t Permutation::scramble(std::uint64_t value) const {
  std::uint64_t low = value & low_mask_;
  std::uint64_t high = value >> low_bits_;
  auto hash = [](std::uint64_t half, std::uint64_t key) {
    std::uint64_t x = (half ^ key) * 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 32)) * 0xD6E8FEB86659FD93u;
    return x >> 31;
  };
  for (std::size_t round = 0; round < round_keys_.size(); round += 2) {
    low ^= hash(high, round_keys_[round]) & low_mask_;
    high ^= hash(low, round_keys_[round + 1]) & high_mask_;
  }
  return (high << low_bits_) | low;
}

std::int64_t Permutation::operator()(std::int64_t position) const {
  auto value = static_cast<std::uint64_t>(position);
  do {
    value = scramble(value);
  } while (value >= size_);
  return static_cast<std::int64_t>(value);
}

}  // namespace millrace
