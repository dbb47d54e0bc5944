// Batches of similar length: everything that holds without buckets holds with them.
#include "tests/pipeline/numbers.h"

#include <millrace/pipeline/data/mixture.h>
#include <millrace/pipeline/data/subset.h>
#include <millrace/pipeline/loader/loader.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace millrace {
namespace {

// Sample i has a length of its own between 10 and 800, most of them short.
std::int64_t length_of(std::int64_t index) {
  const double u = static_cast<double>(mix(5, static_cast<std::uint64_t>(index)) >> 11) * 0x1p-53;
  return 10 + static_cast<std::int64_t>(790 * u * u * u);
}

class Ragged : public Numbers {
 public:
  using Numbers::Numbers;
  std::int64_t length(std::int64_t index, std::int64_t /*epoch*/ = 0) const override {
    return length_of(index);
  }
  const Schema& schema() const override { return schema_; }
  Status load(std::int64_t index, const LoadContext&, Sample& sample) const override {
    sample.out("number").as<std::int64_t>()[0] = index;
    std::ranges::fill(sample.resize("values", {length_of(index)}).as<std::int32_t>(), 7);
    return {};
  }

 private:
  Schema schema_{{.name = "number", .dtype = DType::int64, .shape = {}},
                 {.name = "values", .dtype = DType::int32, .shape = {-1}}};
};

using Batches = std::vector<std::vector<std::int64_t>>;

Batches epoch_of(Loader& loader) {
  Batches all;
  for (const Batch& batch : loader) all.push_back(numbers_in(batch));
  return all;
}

LoaderOptions bucketed(std::int64_t batch, std::int64_t window = 20) {
  return {.batch_size = batch,
          .shuffle = true,
          .threads = 2,
          .bucket = {.window = window},
          .collate = {{"values", Collate::pad_to_longest()}}};
}

double padding_of(const Batches& batches) {
  std::int64_t whole = 0, data = 0;
  for (const auto& batch : batches) {
    std::int64_t longest = 0;
    for (std::int64_t index : batch) longest = std::max(longest, length_of(index));
    for (std::int64_t index : batch) data += length_of(index);
    whole += longest * static_cast<std::int64_t>(batch.size());
  }
  return 1 - static_cast<double>(data) / static_cast<double>(whole);
}

TEST(Buckets, PadLittleAndTellHowMuch) {
  Loader plain(Ragged(2000), bucketed(16, 0)), sorted(Ragged(2000), bucketed(16, 100));
  const double before = padding_of(epoch_of(plain)), after = padding_of(epoch_of(sorted));
  EXPECT_GT(before, 0.5);
  EXPECT_LT(after, 0.05);
  EXPECT_NEAR(plain.stats().padding_share(), before, 1e-12);
  EXPECT_NEAR(sorted.stats().padding_share(), after, 1e-12);
  EXPECT_NE(to_string(sorted.stats()).find("padding: "), std::string::npos);
}

// An index of a mixture is another sample in every epoch, so its length is asked for by epoch.
TEST(Buckets, PadLittleOverAMixtureInEveryEpoch) {
  Loader sorted(Mixture({{Ragged(2000), 1.0}, {Ragged(3000), 2.0}}, {.size = 2000}),
                bucketed(16, 100));
  for (int epoch = 0; epoch < 3; ++epoch) EXPECT_LT(padding_of(epoch_of(sorted)), 0.05) << epoch;
}

TEST(Buckets, GiveEverySampleOnceWhateverTheSizes) {
  for (std::int64_t size : {1, 5, 16, 17, 100, 333}) {
    for (std::int64_t batch : {1, 4, 16, 400}) {
      for (std::int64_t window : {1, 3, 50}) {
        Loader loader(Ragged(size), bucketed(batch, window));
        for (int epoch = 0; epoch < 2; ++epoch) {
          std::map<std::int64_t, int> seen;
          for (const auto& one : epoch_of(loader)) {
            for (std::int64_t number : one) ++seen[number];
          }
          EXPECT_EQ(static_cast<std::int64_t>(seen.size()), size);
          for (const auto& [number, count] : seen) EXPECT_EQ(count, 1) << number;
        }
      }
    }
  }
}

TEST(Buckets, ShuffleBatchesAndDealThemOutAnewInEachEpoch) {
  Loader loader(Ragged(640), bucketed(16, 100));  // all in one window
  std::set<std::vector<std::int64_t>> different;
  for (int epoch = 0; epoch < 4; ++epoch) {
    const Batches batches = epoch_of(loader);
    double rising = 0;
    for (std::size_t i = 1; i < batches.size(); ++i) {
      rising += length_of(batches[i][0]) > length_of(batches[i - 1][0]) ? 1 : 0;
    }
    EXPECT_NEAR(rising / 39, 0.5, 0.3) << "batches must not come by length";
    for (auto batch : batches) {
      std::ranges::sort(batch);
      different.insert(batch);
    }
  }
  EXPECT_GT(different.size(), 4 * 40 * 3 / 4U) << "epochs must not share their batches";
}

TEST(Buckets, DependOnTheSeedAlone) {
  auto run = [](int threads, int prefetch, std::uint64_t seed) {
    LoaderOptions options = bucketed(8, 5);
    options.threads = threads;
    options.prefetch = prefetch;
    options.seed = seed;
    Loader loader(Ragged(203), options);
    Batches all = epoch_of(loader);
    for (auto& batch : epoch_of(loader)) all.push_back(batch);
    return all;
  };
  const Batches expected = run(1, 1, 42);
  for (int threads : {1, 2, 4, 8}) {
    for (int prefetch : {1, 3, 8}) EXPECT_EQ(run(threads, prefetch, 42), expected);
  }
  EXPECT_NE(run(1, 1, 43), expected);
}

TEST(Buckets, ResumeAtEveryStep) {
  const LoaderOptions options = bucketed(8, 4);
  Loader straight(Ragged(101), options);
  Batches expected;
  std::vector<Position> after = {{.seed = 42}};
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (const Batch& batch : straight) {
      expected.push_back(numbers_in(batch));
      after.push_back(straight.position());
    }
  }
  for (std::size_t k = 0; k < after.size(); ++k) {
    LoaderOptions rest = options;
    rest.position = after[k];
    Loader resumed(Ragged(101), rest);
    Batches batches(expected.begin(), expected.begin() + static_cast<long>(k));
    while (batches.size() < expected.size()) {
      for (auto& batch : epoch_of(resumed)) batches.push_back(batch);
    }
    EXPECT_EQ(batches, expected) << "stopped after " << k;
  }
}

// An epoch goes on in the order that it began with, also with other batches, other windows, none,
// and from an epoch that began without.
TEST(Buckets, ResumeWithAnotherBatchSizeWindowOrNumberOfRanks) {
  struct Leg {
    std::int64_t world, batch, window;
    int steps;
  };
  const std::vector<std::vector<Leg>> journeys = {
      {{1, 8, 5, 5}, {2, 8, 5, 4}, {3, 5, 7, 3}, {1, 7, 0, 1000}},
      {{2, 4, 0, 6}, {1, 8, 9, 3}, {1, 3, 2, 1000}}};
  for (const auto& journey : journeys) {
    std::map<std::int64_t, int> seen;
    Position position{.seed = 7};
    for (const Leg& leg : journey) {
      Position after;
      for (std::int64_t rank = 0; rank < leg.world; ++rank) {
        LoaderOptions options = bucketed(leg.batch, leg.window);
        options.rank = rank;
        options.world = leg.world;
        options.position = position;
        Loader loader(Ragged(240), options);
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
    EXPECT_EQ(seen.size(), 240U);
    for (const auto& [number, count] : seen) EXPECT_EQ(count, 1) << number;
    EXPECT_EQ(position.epoch, 1);
  }
}

// r ranks with groups of a see the very batches of one rank with groups of r * a.
TEST(Buckets, AreTheSameForRanksAsForGroups) {
  auto steps = [](std::int64_t size, std::int64_t world, std::int64_t group) {
    std::map<std::pair<std::int64_t, std::int64_t>, std::vector<Batches>> by_group;
    for (std::int64_t rank = 0; rank < world; ++rank) {
      LoaderOptions options = bucketed(4, 6);
      options.rank = rank;
      options.world = world;
      options.group = group;
      Loader loader(Ragged(size), options);
      for (int epoch = 0; epoch < 2; ++epoch) {
        for (const Batch& batch : loader) {
          auto& parts = by_group[{batch.position().epoch, batch.position().next}];
          parts.resize(static_cast<std::size_t>(world));
          parts[static_cast<std::size_t>(rank)].push_back(numbers_in(batch));
        }
      }
    }
    // Of each group: part by part, rank by rank.
    Batches all;
    for (const auto& [at, ranks] : by_group) {
      for (std::size_t part = 0; part < ranks[0].size(); ++part) {
        for (const Batches& rank : ranks) all.push_back(rank[part]);
      }
    }
    return all;
  };
  for (std::int64_t size : {24, 101, 333}) {
    const Batches alone = steps(size, 1, 6);
    EXPECT_EQ(steps(size, 2, 3), alone);
    EXPECT_EQ(steps(size, 3, 2), alone);
    EXPECT_EQ(steps(size, 6, 1), alone);
  }
}

TEST(Buckets, WorkOnPartsOfADataSetAndInItsOwnOrder) {
  auto data = std::make_shared<Ragged>(500);
  auto [train, valid] = random_split(data, {.valid_fraction = 0.5, .seed = 42});
  Loader loader(train, bucketed(10, 25));
  EXPECT_LT(padding_of(epoch_of(loader)), 0.1);
  LoaderOptions options = bucketed(10, 50);
  options.shuffle = false;
  Loader in_order(data, options);
  const Batches batches = epoch_of(in_order);
  for (std::size_t i = 1; i < batches.size(); ++i) {
    EXPECT_LE(length_of(batches[i - 1].back()), length_of(batches[i].front()));
  }
}

TEST(Buckets, RefuseWhatMakesNoSense) {
  EXPECT_NE(message_of([] {
              Loader(Numbers(10), {.batch_size = 2, .bucket = {.window = 5}});
            }).find("does not know the length of any sample"),
            std::string::npos);
  LoaderOptions options = bucketed(4);
  options.position = Position{.next = 4, .window = 3};  // with no bucket
  EXPECT_THROW(Loader(Ragged(10), options), Error);
  options.position.reset();
  options.bucket.window = -1;
  EXPECT_THROW(Loader(Ragged(10), options), Error);
  Loader loader(Ragged(10), bucketed(4));
  EXPECT_THROW(loader.seek({.next = 4, .bucket = 3}), Error);
}

}  // namespace
}  // namespace millrace
