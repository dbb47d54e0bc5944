#include <millrace/datasets/compose/generated.h>

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(GeneratedImages, AreTheSameForTheSameSeedEpochAndIndex) {
  GeneratedImages images({.count = 10, .shape = {8, 8, 3}});
  auto pixels = [&](std::uint64_t seed, std::int64_t epoch, std::int64_t index) {
    Sample sample(images.schema());
    LoadContext context{.seed = seed, .epoch = epoch, .index = index};
    EXPECT_TRUE(images.load(index, context, sample).ok());
    auto values = sample["image"].as<std::uint8_t>();
    return std::vector<std::uint8_t>(values.begin(), values.end());
  };
  EXPECT_EQ(pixels(1, 0, 3), pixels(1, 0, 3));
  EXPECT_NE(pixels(1, 0, 3), pixels(2, 0, 3));
  EXPECT_NE(pixels(1, 0, 3), pixels(1, 1, 3));
  EXPECT_NE(pixels(1, 0, 3), pixels(1, 0, 4));
}

TEST(GeneratedImages, AreBadInTheShareAskedForAndInEveryEpochTheSame) {
  GeneratedImages images({.count = 2000, .shape = {1, 1, 1}, .bad_fraction = 0.05});
  Sample sample(images.schema());
  int bad = 0;
  for (std::int64_t i = 0; i < images.size(); ++i) {
    bool first = images.load(i, {.epoch = 0, .index = i}, sample).ok();
    bool second = images.load(i, {.epoch = 7, .index = i}, sample).ok();
    EXPECT_EQ(first, second);
    bad += first ? 0 : 1;
  }
  EXPECT_NEAR(bad, 100, 40);
}

}  // namespace
}  // namespace millrace
