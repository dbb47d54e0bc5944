// Compares the torch-free reimplementations of torch functions with LibTorch.

#include <millrace/datasets/compose/generated.h>
#include <millrace/pipeline/base/random.h>
#include <millrace/pipeline/data/subset.h>
#include <millrace/training/device/torch_api.h>

#include <vector>

#include <gtest/gtest.h>

namespace millrace {
namespace {

std::vector<std::int64_t> libtorch_randperm(std::int64_t n, std::uint64_t seed) {
  auto generator = at::detail::createCPUGenerator(seed);
  torch::Tensor order = torch::randperm(n, generator, torch::kInt64);
  const auto* data = order.data_ptr<std::int64_t>();
  return {data, data + n};
}

constexpr std::uint64_t large_seed = (std::uint64_t{1} << 40) + 1;

TEST(Reference, RandpermEqualsLibTorchs) {
  for (std::int64_t n : {0, 1, 2, 10, 1000, 100003}) {
    for (std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{42}, large_seed}) {
      EXPECT_TRUE(torch_randperm(n, seed) == libtorch_randperm(n, seed)) << n << " " << seed;
    }
  }
}

TEST(Reference, RandomSplitTakesTheSlicesOfThatOrder) {
  for (std::int64_t n : {2, 10, 600, 100003}) {
    for (std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{42}, large_seed}) {
      auto [train, valid] =
          random_split(GeneratedImages({.count = n}), {.valid_fraction = 0.3, .seed = seed});
      std::vector<std::int64_t> both = train.indices();
      both.insert(both.end(), valid.indices().begin(), valid.indices().end());
      EXPECT_TRUE(both == libtorch_randperm(n, seed)) << n << " " << seed;
      EXPECT_EQ(train.size(), static_cast<std::int64_t>(0.7 * static_cast<double>(n)));
    }
  }
}

}  // namespace
}  // namespace millrace
