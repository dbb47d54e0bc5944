// The promises about order: the same batches whatever the threads, the prefetch and the timing; an
// exact rest after a resume; every sample once, whatever the number of ranks.
#include "tests/pipeline/numbers.h"

#include <millrace/pipeline/data/subset.h>
#include <millrace/pipeline/loader/loader.h>

#include <map>
#include <random>

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(Loader, GivesEverySampleOnceInOrder) {
  Loader loader(Numbers(10), {.batch_size = 4});
  std::vector<std::vector<std::int64_t>> batches;
  for (const Batch& batch : loader) batches.push_back(numbers_in(batch));
  EXPECT_EQ(batches, (std::vector<std::vector<std::int64_t>>{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9}}));
  EXPECT_EQ(loader.batches_per_epoch(), 3);
}

TEST(Loader, ShufflesDifferentlyInEachEpochAndStartsAnewByItself) {
  Loader loader(Numbers(100), {.batch_size = 7, .shuffle = true});
  std::set<std::vector<std::int64_t>> orders;
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::vector<std::int64_t> order;
    for (const Batch& batch : loader) {
      EXPECT_EQ(batch.position().epoch, epoch);
      for (std::int64_t number : numbers_in(batch)) order.push_back(number);
    }
    std::set<std::int64_t> distinct(order.begin(), order.end());
    EXPECT_EQ(distinct.size(), 100U);
    EXPECT_EQ(order.size(), 100U);
    orders.insert(order);
  }
  EXPECT_EQ(orders.size(), 3U);
}

TEST(Loader, LoadsNoMoreThanTheEpochHas) {
  auto data = std::make_shared<Numbers>(20);
  Loader loader(data, {.batch_size = 4, .prefetch = 8});
  fingerprints(loader);
  EXPECT_EQ(*data->loads, 20);
}

TEST(Loader, CyclesOverEpochsWithoutAnEnd) {
  Loader loader(Numbers(10), {.batch_size = 4, .shuffle = true, .tail = Tail::drop});
  std::vector<std::pair<std::int64_t, std::int64_t>> positions;
  for (const Batch& batch : loader.cycle()) {
    positions.emplace_back(batch.position().epoch, batch.position().next);
    if (positions.size() == 5) break;
  }
  EXPECT_EQ(positions, (std::vector<std::pair<std::int64_t, std::int64_t>>{
                           {0, 0}, {0, 4}, {1, 0}, {1, 4}, {2, 0}}));
}

// Must show: 1, 2, 4 and 8 threads, prefetch 1 to 8, random delays: the same batches, bit for bit.
TEST(Loader, GivesTheSameBatchesForAnyThreadsPrefetchAndTiming) {
  auto run = [](int threads, int prefetch, bool delays) {
    auto data = std::make_shared<Numbers>(203);
    if (delays) {
      data->before_load = [](std::int64_t, const LoadContext&) -> Status {
        thread_local std::mt19937 engine(std::random_device{}());
        std::this_thread::sleep_for(std::chrono::microseconds(engine() % 300));
        return {};
      };
    }
    Loader loader(data,
                  {.batch_size = 16, .shuffle = true, .prefetch = prefetch, .threads = threads});
    auto all = fingerprints(loader);
    for (auto& batch : fingerprints(loader)) all.push_back(batch);
    return all;
  };
  auto expected = run(1, 1, false);
  EXPECT_EQ(expected.size(), 26U);
  for (int threads : {1, 2, 4, 8}) {
    for (int prefetch = 1; prefetch <= 8; ++prefetch) {
      EXPECT_EQ(run(threads, prefetch, prefetch % 2 == threads % 2), expected)
          << threads << " threads, prefetch " << prefetch;
    }
    EXPECT_EQ(run(threads, 3, true), expected);
  }
}

TEST(Loader, ResumesAtEveryStepOfAnEpoch) {
  LoaderOptions options{.batch_size = 8, .shuffle = true, .prefetch = 3, .threads = 2};
  auto data = std::make_shared<Numbers>(101);
  std::vector<std::string> expected;
  {
    Loader straight(data, options);
    for (int epoch = 0; epoch < 2; ++epoch) {
      for (auto& batch : fingerprints(straight)) expected.push_back(batch);
    }
  }
  for (std::size_t k = 0; k <= 13; ++k) {
    Position stopped;
    {
      Loader first(data, options);
      auto it = first.begin();
      for (std::size_t i = 0; i + 1 < k; ++i) ++it;
      stopped = k == 0 ? Position{.seed = options.seed} : first.position();
    }
    options.position = stopped;
    Loader rest(data, options);
    std::vector<std::string> batches(expected.begin(), expected.begin() + static_cast<long>(k));
    while (batches.size() < expected.size()) {
      for (auto& batch : fingerprints(rest)) batches.push_back(batch);
    }
    EXPECT_EQ(batches, expected) << "stopped after " << k;
    options.position.reset();
  }
}

TEST(Loader, ResumesFromABatchesOwnNextPosition) {
  auto data = std::make_shared<Numbers>(50);
  LoaderOptions options{.batch_size = 8, .shuffle = true, .threads = 2};
  Loader loader(data, options);
  auto first = loader.next();
  auto second = loader.next();
  options.position = first->next_position();
  Loader resumed(data, options);
  EXPECT_EQ(fingerprint(*resumed.next()), fingerprint(*second));
}

// Must show: world 1 -> 2 -> 3 -> 1 within one epoch: every sample exactly once.
TEST(Loader, ResumesWithAnotherNumberOfRanksAndAnotherBatchSize) {
  constexpr std::int64_t size = 240;
  auto data = std::make_shared<Numbers>(size);
  std::map<std::int64_t, int> seen;
  Position position{.seed = 7};
  struct Leg {
    std::int64_t world, batch;
    int steps;
  };
  for (Leg leg : {Leg{1, 8, 5}, Leg{2, 8, 4}, Leg{3, 5, 3}, Leg{1, 7, 1000}}) {
    Position after;
    for (std::int64_t rank = 0; rank < leg.world; ++rank) {
      Loader loader(data, {.batch_size = leg.batch,
                           .shuffle = true,
                           .threads = 2,
                           .rank = rank,
                           .world = leg.world,
                           .position = position});
      for (int step = 0; step < leg.steps; ++step) {
        auto batch = loader.next();
        if (!batch) break;
        for (std::int64_t number : numbers_in(*batch)) ++seen[number];
      }
      if (rank > 0) {
        EXPECT_EQ(loader.position(), after) << "ranks disagree on the position";
      }
      after = loader.position();
    }
    position = after;
  }
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(size));
  for (const auto& [number, count] : seen) EXPECT_EQ(count, 1) << number;
  EXPECT_EQ(position.epoch, 1);
}

TEST(Loader, SeeksBackAndForth) {
  auto data = std::make_shared<Numbers>(40);
  Loader loader(data, {.batch_size = 8, .shuffle = true, .threads = 2});
  auto first = fingerprints(loader);
  loader.next();
  loader.seek({.seed = 42, .epoch = 0, .next = 0});
  EXPECT_EQ(fingerprints(loader), first);
  loader.seek({.seed = 42, .epoch = 0, .next = 16});
  EXPECT_EQ(fingerprints(loader), std::vector<std::string>(first.begin() + 2, first.end()));
  EXPECT_THROW(loader.seek({.seed = 42, .epoch = 0, .next = 41}), Error);
}

TEST(Loader, KeepsArraysThatTheConsumerKeeps) {
  Loader loader(Numbers(400), {.batch_size = 10, .prefetch = 1, .threads = 2});
  std::vector<Array> kept;
  std::vector<Array> kept_ragged;
  std::vector<std::vector<std::int64_t>> expected;
  for (const Batch& batch : loader) {
    kept.push_back(batch["number"]);
    kept_ragged.push_back(batch.list("ragged")[4]);
    expected.push_back(numbers_in(batch));
  }
  for (std::size_t i = 0; i < kept.size(); ++i) {
    auto now = kept[i].as<const std::int64_t>();
    EXPECT_EQ(std::vector<std::int64_t>(now.begin(), now.end()), expected[i]);
    EXPECT_EQ(kept_ragged[i].as<const std::int32_t>()[0], expected[i][4] * 10);
  }
}

TEST(Loader, ABatchOutlivesItsLoader) {
  std::optional<Batch> batch;
  {
    Loader loader(Numbers(100), {.batch_size = 5, .threads = 2});
    loader.next();
    batch = loader.next();
  }
  EXPECT_EQ(numbers_in(*batch), (std::vector<std::int64_t>{5, 6, 7, 8, 9}));
  EXPECT_EQ(batch->texts("name")[0], "n5");
}

TEST(Loader, SharesOnePoolBetweenLoaders) {
  auto pool = std::make_shared<Pool>(2);
  Loader train(Numbers(64), {.batch_size = 8, .shuffle = true, .pool = pool});
  Loader valid(Numbers(32), {.batch_size = 8, .pool = pool});
  auto expected = [] {
    Loader alone(Numbers(64), {.batch_size = 8, .shuffle = true, .threads = 1});
    return fingerprints(alone);
  }();
  std::vector<std::string> mixed;
  while (auto batch = train.next()) {
    mixed.push_back(fingerprint(*batch));
    if (mixed.size() % 3 == 0) {
      EXPECT_EQ(fingerprints(valid).size(), 4U);
    }
  }
  EXPECT_EQ(mixed, expected);
}

TEST(Loader, SamplesOfASplitMakeTheSameRandomChoicesAsInTheWhole) {
  auto data = std::make_shared<Numbers>(50);
  auto [train, valid] = random_split(data, {.valid_fraction = 0.2, .seed = 42});
  auto noise_by_number = [](Loader loader) {
    std::map<std::int64_t, std::uint32_t> noise;
    for (const Batch& batch : loader) {
      for (std::size_t i = 0; i < static_cast<std::size_t>(batch.size()); ++i) {
        noise[batch["number"].as<const std::int64_t>()[i]] =
            batch["noise"].as<const std::uint32_t>()[i];
      }
    }
    return noise;
  };
  auto whole = noise_by_number(Loader(data, {.batch_size = 10, .threads = 2}));
  auto parts = noise_by_number(Loader(train, {.batch_size = 10, .shuffle = true, .threads = 2}));
  for (const auto& [number, noise] :
       noise_by_number(Loader(valid, {.batch_size = 10, .threads = 2}))) {
    parts[number] = noise;
  }
  EXPECT_EQ(parts, whole);
}

}  // namespace
}  // namespace millrace
