// How many samples a task loads is a matter of speed alone: the batches are the same.
#include "tests/pipeline/numbers.h"

#include <millrace/pipeline/data/mixture.h>
#include <millrace/pipeline/data/subset.h>

#include <numeric>

#include <gtest/gtest.h>

namespace millrace {
namespace {

class ManyPerTask : public Numbers {
 public:
  ManyPerTask(std::int64_t size, std::int64_t per_task) : Numbers(size), per_task_(per_task) {}
  std::int64_t samples_per_task() const override { return per_task_; }

 private:
  std::int64_t per_task_;
};

std::vector<std::string> two_epochs(std::int64_t per_task, bool drop) {
  ManyPerTask numbers(103, per_task);
  numbers.before_load = [](std::int64_t index, const LoadContext&) -> Status {
    if (index % 17 == 3) return Error("bad");
    return {};
  };
  Loader loader(numbers, {.batch_size = 10,
                          .shuffle = true,
                          .threads = 3,
                          .errors = {.drop = drop, .max_fraction = 1}});
  auto all = fingerprints(loader);
  for (std::string& text : fingerprints(loader)) all.push_back(std::move(text));
  LoaderStats stats = loader.stats();
  EXPECT_EQ(stats.stages[0].count, 206) << "each sample counts as one load";
  return all;
}

TEST(LoaderTasks, OfAnySizeGiveTheSameBatches) {
  for (bool drop : {false, true}) {
    auto one_by_one = two_epochs(1, drop);
    EXPECT_EQ(one_by_one.size(), 22U);
    for (std::int64_t per_task : {2, 3, 7, 10, 1000}) {
      EXPECT_EQ(two_epochs(per_task, drop), one_by_one) << per_task << " samples a task";
    }
  }
}

TEST(LoaderTasks, AreNamedByTheirRowsInTheGraph) {
  Loader loader(ManyPerTask(50, 4), {.batch_size = 10, .threads = 1});
  std::string graph = loader.dump_graph();
  EXPECT_NE(graph.find("rows 0 to 3"), std::string::npos);
  EXPECT_NE(graph.find("rows 8 to 9"), std::string::npos);
  EXPECT_EQ(graph.find("rows 12"), std::string::npos);
}

TEST(LoaderTasks, StopAtOnceInsideATask) {
  ManyPerTask numbers(1000, 100);
  Loader* running = nullptr;
  numbers.before_load = [&](std::int64_t index, const LoadContext&) -> Status {
    if (index == 5) running->cancel();
    return {};
  };
  auto loads = numbers.loads;
  Loader loader(numbers, {.batch_size = 100, .threads = 1});
  running = &loader;
  EXPECT_NE(message_of([&] { loader.next(); }).find("cancelled"), std::string::npos);
  EXPECT_LE(loads->load(), 7);
}

TEST(LoaderTasks, AreAsLargeAsTheDataSetInsideWants) {
  std::vector<std::int64_t> indices(20);
  std::iota(indices.begin(), indices.end(), 0);
  EXPECT_EQ(Subset(ManyPerTask(50, 4), indices).samples_per_task(), 4);
  EXPECT_EQ(Mixture({{ManyPerTask(50, 4), 1.0}, {ManyPerTask(50, 8), 1.0}}).samples_per_task(), 4);
  EXPECT_EQ(Numbers(5).samples_per_task(), 1);
}

class WithCosts : public Numbers {
 public:
  using Numbers::Numbers;
  std::int64_t cost(std::int64_t index, std::int64_t /*epoch*/ = 0) const override {
    return index * 7 % 10;
  }
};

TEST(LoaderTasks, BeginWithTheLongestOfABatchAndChangeNothingElse) {
  std::vector<std::int64_t> order;
  WithCosts numbers(20);
  numbers.before_load = [&order](std::int64_t index, const LoadContext&) {
    order.push_back(index);
    return Status();
  };
  Loader loader(numbers, {.batch_size = 10, .threads = 1});
  Loader plain(Numbers(20), {.batch_size = 10, .threads = 1});
  EXPECT_EQ(fingerprints(loader), fingerprints(plain));
  ASSERT_EQ(order.size(), 20U);
  for (std::size_t i = 0; i + 1 < order.size(); ++i) {
    if (i == 9) continue;  // there another batch begins
    EXPECT_EQ(order[i] / 10, order[i + 1] / 10);
    EXPECT_GT(numbers.cost(order[i]), numbers.cost(order[i + 1]));
  }
}

// An index of a mixture is another sample in every epoch, so its cost is asked for by epoch.
TEST(LoaderTasks, BeginWithTheLongestOfAMixtureInEveryEpoch) {
  std::vector<std::int64_t> order;
  WithCosts numbers(40);
  numbers.before_load = [&order](std::int64_t index, const LoadContext&) {
    order.push_back(index);
    return Status();
  };
  Loader loader(Mixture({{numbers, 1.0}}, {.size = 10}), {.batch_size = 10, .threads = 1});
  for (int epoch = 0; epoch < 3; ++epoch) {
    order.clear();
    fingerprints(loader);
    ASSERT_EQ(order.size(), 10U);
    for (std::size_t i = 0; i + 1 < order.size(); ++i) {
      EXPECT_GE(numbers.cost(order[i]), numbers.cost(order[i + 1])) << "epoch " << epoch;
    }
  }
}

}  // namespace
}  // namespace millrace
