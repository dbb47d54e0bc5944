#include <millrace/pipeline/base/error.h>
#include <millrace/pipeline/base/random.h>

#include <numeric>
#include <random>
#include <utility>

namespace millrace {

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    std::uint64_t a = std::uint64_t{0xD2511F53} * counter[0];
    std::uint64_t b = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {
        static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
        static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  // SplitMix64's finaliser over a sum that differs for (a, b) and (b, a).
  std::uint64_t x = a * 0x9E3779B97F4A7C15u + b + 0x632BE59BD9B4E019u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

Random::Random(std::uint64_t seed, std::int64_t epoch, std::int64_t index, std::string_view stage) {
  std::uint64_t stage_hash = 0xCBF29CE484222325u;  // FNV-1a
  for (char c : stage) {
    stage_hash = (stage_hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  }
  std::uint64_t key = mix(seed, stage_hash);
  auto position = static_cast<std::uint64_t>(index);
  key_ = {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)};
  counter_ = {0, static_cast<std::uint32_t>(epoch), static_cast<std::uint32_t>(position),
              static_cast<std::uint32_t>(position >> 32)};
}

Random::result_type Random::operator()() {
  if (used_ == 4) {
    block_ = philox4x32(counter_, key_);
    ++counter_[0];
    used_ = 0;
  }
  return block_[static_cast<std::size_t>(used_++)];
}

double Random::uniform() {
  std::uint64_t high = (*this)() >> 5;  // 27 bits
  std::uint64_t low = (*this)() >> 6;   // 26 bits
  return static_cast<double>((high << 26) | low) * 0x1.0p-53;
}

std::int64_t Random::below(std::int64_t bound) {
  if (bound < 1) {
    throw Error("Random::below needs a bound of at least 1, but got " + std::to_string(bound))
        .kind(ErrorKind::usage);
  }
  auto range = static_cast<std::uint64_t>(bound);
  // Lemire's multiply-and-reject: the few products that would favour small results are redrawn.
  std::uint64_t threshold = (0 - range) % range;
  while (true) {
    std::uint64_t bits = (std::uint64_t{(*this)()} << 32) | (*this)();
    __extension__ using Wide = unsigned __int128;
    Wide product = Wide{bits} * range;
    if (static_cast<std::uint64_t>(product) >= threshold) {
      return static_cast<std::int64_t>(product >> 64);
    }
  }
}

std::vector<std::int64_t> torch_randperm(std::int64_t n, std::uint64_t seed) {
  if (n < 0) throw Error("randperm of " + std::to_string(n)).kind(ErrorKind::usage);
  // torch seeds its Mersenne twister with the low 32 bits alone.
  std::mt19937 engine(static_cast<std::uint32_t>(seed));
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  // From this length on, torch draws two words per element.
  bool wide = n >= static_cast<std::int64_t>(std::numeric_limits<std::uint32_t>::max()) / 20;
  for (std::int64_t i = 0; i + 1 < n; ++i) {
    std::uint64_t draw = engine();
    if (wide) draw = (draw << 32) | engine();
    auto offset = static_cast<std::int64_t>(draw % static_cast<std::uint64_t>(n - i));
    std::swap(order[static_cast<std::size_t>(i)], order[static_cast<std::size_t>(i + offset)]);
  }
  return order;
}

}  // namespace millrace
