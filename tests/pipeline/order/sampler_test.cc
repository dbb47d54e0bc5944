#include "tests/pipeline/numbers.h"

#include <millrace/pipeline/base/error.h>
#include <millrace/pipeline/order/sampler.h>

#include <map>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

namespace millrace {
namespace {

struct Seen {
  std::map<std::int64_t, int> fresh;  // how often each sample was seen, repeats left out
  std::vector<std::int64_t> steps;    // per rank
  std::vector<std::vector<std::int64_t>> sizes;
  std::int64_t wrapped = 0;
};

Seen walk(SamplerOptions options) {
  Seen seen;
  for (options.rank = 0; options.rank < options.world; ++options.rank) {
    Sampler sampler(options);
    Position at{.seed = 3};
    std::int64_t steps = 0;
    std::vector<std::int64_t> sizes;
    while (at.epoch == 0) {
      auto step = sampler.step(at);
      if (!step) break;
      for (std::int64_t row = 0; row < step->rows; ++row) {
        if (row < step->rows - step->wrapped) ++seen.fresh[sampler.index(*step, row)];
      }
      seen.wrapped += step->wrapped;
      sizes.push_back(step->rows);
      ++steps;
      at = step->after;
    }
    EXPECT_EQ(steps, sampler.steps_per_epoch());
    seen.steps.push_back(steps);
    seen.sizes.push_back(sizes);
  }
  return seen;
}

TEST(Sampler, GivesEveryRankTheSameBatchesAndEverySampleOnce) {
  for (std::int64_t size : {1, 5, 16, 17, 31, 100, 101}) {
    for (std::int64_t world : {1, 2, 3, 7}) {
      for (std::int64_t batch : {1, 4, 8, 200}) {
        for (Tail tail : {Tail::shorten, Tail::drop, Tail::fill}) {
          if (tail == Tail::drop && batch * world > size) continue;
          SCOPED_TRACE(testing::Message() << size << " samples, world " << world << ", batch "
                                          << batch << ", tail " << static_cast<int>(tail));
          Seen seen = walk(
              {.size = size, .batch_size = batch, .shuffle = true, .tail = tail, .world = world});
          for (const auto& sizes : seen.sizes) EXPECT_EQ(sizes, seen.sizes[0]);
          for (const auto& [sample, count] : seen.fresh) EXPECT_EQ(count, 1);
          std::int64_t dropped = tail == Tail::drop ? size % (batch * world) : 0;
          EXPECT_EQ(static_cast<std::int64_t>(seen.fresh.size()), size - dropped);
          if (tail == Tail::shorten) {
            EXPECT_LT(seen.wrapped, world);
          }
          if (tail == Tail::fill) {
            for (std::int64_t rows : seen.sizes[0]) EXPECT_EQ(rows, batch);
          }
        }
      }
    }
  }
}

TEST(Sampler, RanksTakeConsecutivePartsOfOneGlobalBatch) {
  SamplerOptions options{.size = 12, .batch_size = 2, .rank = 1, .world = 3};
  Sampler sampler(options);
  auto step = sampler.step({});
  EXPECT_EQ(sampler.index(*step, 0), 2);
  EXPECT_EQ(sampler.index(*step, 1), 3);
  EXPECT_EQ(step->after.next, 6);
}

// What gradient accumulation rests on: it does not matter over how many ranks a group is spread.
TEST(Sampler, GroupsSpreadOverRanksAreTheSameBatches) {
  using Rows = std::vector<std::int64_t>;
  auto groups = [](std::int64_t size, std::int64_t batch, std::int64_t world, std::int64_t group) {
    std::vector<std::vector<Rows>> all;  // the batches of each group, in their order
    SamplerOptions options{
        .size = size, .batch_size = batch, .shuffle = true, .world = world, .group = group};
    Position at{.seed = 5};
    while (at.epoch < 3) {
      all.emplace_back();
      for (std::int64_t part = 0; part < group; ++part) {
        Position after = at;
        for (options.rank = 0; options.rank < world; ++options.rank) {
          const Sampler sampler(options);
          const auto step = sampler.step(at);
          Rows rows;
          for (std::int64_t row = 0; row < step->rows; ++row) {
            rows.push_back(sampler.index(*step, row));
          }
          all.back().push_back(rows);
          after = step->after;
        }
        at = after;
      }
      EXPECT_EQ(at.part, 0);
    }
    return all;
  };
  for (std::int64_t size : {1, 7, 24, 38, 101}) {
    for (std::int64_t batch : {1, 3, 4}) {
      const auto alone = groups(size, batch, 1, 6);
      EXPECT_EQ(groups(size, batch, 2, 3), alone);
      EXPECT_EQ(groups(size, batch, 3, 2), alone);
      EXPECT_EQ(groups(size, batch, 6, 1), alone);
    }
  }
}

TEST(Sampler, ReplacementsDependOnSeedEpochPositionAndAttemptOnly) {
  Sampler a({.size = 1000, .batch_size = 4, .shuffle = true});
  Sampler b({.size = 1000, .batch_size = 32, .shuffle = true, .rank = 1, .world = 2});
  Position at{.seed = 9, .epoch = 2, .next = 64};
  EXPECT_EQ(a.replacement(at, 70, 1), b.replacement({.seed = 9, .epoch = 2}, 70, 1));
  std::set<std::int64_t> distinct;
  for (std::int64_t attempt = 1; attempt <= 20; ++attempt) {
    distinct.insert(a.replacement(at, 70, attempt));
  }
  EXPECT_GT(distinct.size(), 15U);
}

TEST(Sampler, RefusesWhatCouldNotGiveABatchAndNamesTheNumbers) {
  auto message = [](SamplerOptions options) { return message_of([&] { Sampler{options}; }); };
  EXPECT_NE(message({.size = 0}).find("the dataset is empty (size 0)"), std::string::npos);
  EXPECT_NE(message({.size = 5, .batch_size = 0}).find("batch_size must be at least 1, but is 0"),
            std::string::npos);
  EXPECT_NE(message({.size = 5, .rank = 7, .world = 4}).find("less than world (4), but is 7"),
            std::string::npos);
  std::string text = message({.size = 30, .batch_size = 16, .tail = Tail::drop, .world = 2});
  for (const char* part : {"32 samples", "batch_size 16 x 2 ranks", "the dataset has 30"}) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace millrace
