#include "tests/reference.h"

#include <millrace/pipeline/base/error.h>
#include <millrace/pipeline/base/random.h>
#include <millrace/pipeline/order/permutation.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include <gtest/gtest.h>

namespace millrace {
namespace {

// The known answers published with the generator.
TEST(Random, IsPhilox4x32With10Rounds) {
  using Block = std::array<std::uint32_t, 4>;
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({~0U, ~0U, ~0U, ~0U}, {~0U, ~0U}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, DependsOnEveryPartOfItsKey) {
  auto first = [](std::uint64_t seed, std::int64_t epoch, std::int64_t index, const char* stage) {
    return Random(seed, epoch, index, stage)();
  };
  auto base = first(1, 2, 3, "crop");
  EXPECT_EQ(base, first(1, 2, 3, "crop"));
  EXPECT_NE(base, first(9, 2, 3, "crop"));
  EXPECT_NE(base, first(1, 9, 3, "crop"));
  EXPECT_NE(base, first(1, 2, 9, "crop"));
  EXPECT_NE(base, first(1, 2, std::int64_t{3} + (std::int64_t{1} << 32), "crop"));
  EXPECT_NE(base, first(1, 2, 3, "flip"));
}

TEST(Random, IsUniform) {
  Random random(7, 0, 0, "uniform");
  std::vector<int> counts(10);
  double sum = 0;
  for (int i = 0; i < 100'000; ++i) {
    ++counts[static_cast<std::size_t>(random.below(10))];
    double value = random.uniform();
    ASSERT_GE(value, 0);
    ASSERT_LT(value, 1);
    sum += value;
  }
  for (int count : counts) EXPECT_NEAR(count, 10'000, 500);
  EXPECT_NEAR(sum / 100'000, 0.5, 0.01);
  EXPECT_EQ(random.below(1), 0);
  EXPECT_THROW(random.below(0), Error);
}

#if MILLRACE_PYTHON_TORCH
TEST(Random, RandpermEqualsTorch) {
  std::string expected = run_python(R"(
import torch
for n in (0, 1, 2, 10, 1000, 100003):
    for seed in (0, 42, 2**40 + 1):
        order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
        print(n, seed, *order.tolist())
)");
  std::string actual;
  for (std::int64_t n : {0, 1, 2, 10, 1000, 100003}) {
    for (std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{42}, (std::uint64_t{1} << 40) + 1}) {
      actual += std::to_string(n) + " " + std::to_string(seed);
      for (std::int64_t index : torch_randperm(n, seed)) actual += " " + std::to_string(index);
      actual += "\n";
    }
  }
  EXPECT_TRUE(actual == expected) << actual.substr(0, 200) << "\n" << expected.substr(0, 200);
}
#endif

TEST(Permutation, VisitsEveryPositionOnce) {
  for (std::int64_t n : {1, 2, 3, 7, 63, 64, 65, 1000, 4096, 100'003}) {
    Permutation order(n, 42, 5);
    std::vector<bool> seen(static_cast<std::size_t>(n));
    for (std::int64_t p = 0; p < n; ++p) {
      std::int64_t value = order(p);
      ASSERT_GE(value, 0);
      ASSERT_LT(value, n);
      ASSERT_FALSE(seen[static_cast<std::size_t>(value)]) << n;
      seen[static_cast<std::size_t>(value)] = true;
    }
  }
}

TEST(Permutation, DiffersBetweenEpochsAndSeeds) {
  auto order = [](std::uint64_t seed, std::int64_t epoch) {
    Permutation permutation(100, seed, epoch);
    std::vector<std::int64_t> values;
    for (std::int64_t p = 0; p < 100; ++p) values.push_back(permutation(p));
    return values;
  };
  EXPECT_EQ(order(1, 0), order(1, 0));
  EXPECT_NE(order(1, 0), order(1, 1));
  EXPECT_NE(order(1, 0), order(2, 0));
}

// Chi-square over all 120 orders of 5 samples, and over where each of 100 samples lands: a shuffle
// that favours some orders would fail by far.
TEST(Permutation, IsFairOnSmallRanges) {
  std::map<std::vector<std::int64_t>, int> counts;
  constexpr int draws = 24'000;
  for (int epoch = 0; epoch < draws; ++epoch) {
    Permutation order(5, 42, epoch);
    ++counts[{order(0), order(1), order(2), order(3), order(4)}];
  }
  EXPECT_EQ(counts.size(), 120U);
  double chi = 0;
  for (const auto& [order, count] : counts)
    chi += std::pow(count - draws / 120.0, 2) / (draws / 120.0);
  EXPECT_LT(chi, 119 + 5 * std::sqrt(2 * 119));

  std::vector<int> lands(100 * 100);
  for (int epoch = 0; epoch < 10'000; ++epoch) {
    Permutation order(100, 7, epoch);
    for (int p = 0; p < 100; ++p) ++lands[static_cast<std::size_t>(p * 100 + order(p))];
  }
  chi = 0;
  for (int count : lands) chi += std::pow(count - 100.0, 2) / 100.0;
  EXPECT_LT(chi, 9801 + 5 * std::sqrt(2 * 9801));
}

// Neighbours in the order are not neighbours in the data set: the correlation is small.
TEST(Permutation, HasNoStripesOnLargeRanges) {
  constexpr std::int64_t n = 1'000'000'000;
  Permutation order(n, 3, 0);
  double sum = 0, square = 0, product = 0;
  double previous = static_cast<double>(order(0)) / n;
  constexpr int draws = 100'000;
  for (int p = 1; p <= draws; ++p) {
    double value = static_cast<double>(order(p)) / n;
    sum += value;
    square += value * value;
    product += (value - 0.5) * (previous - 0.5);
    previous = value;
  }
  EXPECT_NEAR(sum / draws, 0.5, 0.01);
  EXPECT_NEAR(square / draws, 1.0 / 3, 0.01);
  EXPECT_NEAR(product / draws * 12, 0, 0.02);
}

}  // namespace
}  // namespace millrace
