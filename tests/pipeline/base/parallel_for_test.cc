#include <millrace/pipeline/base/error.h>
#include <millrace/pipeline/base/parallel_for.h>

#include <atomic>
#include <vector>

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(ParallelFor, RunsEachOnce) {
  Pool pool(3);
  for (std::int64_t count : {0, 1, 2, 1000}) {
    std::vector<std::atomic<int>> runs(static_cast<std::size_t>(count));
    parallel_for(pool, count, [&](std::int64_t i) { ++runs[static_cast<std::size_t>(i)]; });
    for (const auto& n : runs) EXPECT_EQ(n, 1);
  }
}

// With one thread, a caller that waited for helpers would wait for itself.
TEST(ParallelFor, MayBeCalledFromATaskOfTheSamePool) {
  Pool pool(1);
  std::atomic<int> runs{0};
  parallel_for(pool, 4,
               [&](std::int64_t) { parallel_for(pool, 8, [&](std::int64_t) { ++runs; }); });
  EXPECT_EQ(runs, 32);
}

TEST(ParallelFor, ThrowsTheFirstExceptionAgainAfterAllHaveStopped) {
  Pool pool(2);
  std::atomic<int> running{0}, most{0};
  EXPECT_THROW(parallel_for(pool, 1000,
                            [&](std::int64_t i) {
                              ++running;
                              if (i == 5) {
                                --running;
                                throw Error("five");
                              }
                              ++most;
                              --running;
                            }),
               Error);
  EXPECT_EQ(running, 0);
  EXPECT_LT(most, 1000);
}

}  // namespace
}  // namespace millrace
