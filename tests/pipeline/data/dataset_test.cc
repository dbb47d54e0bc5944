// Data sets made of others: subsets and splits, maps, mixtures; and the sample they fill.
#include "tests/pipeline/numbers.h"
#include "tests/reference.h"

#include <millrace/pipeline/data/map.h>
#include <millrace/pipeline/data/mixture.h>
#include <millrace/pipeline/data/subset.h>
#include <millrace/pipeline/loader/loader.h>

#include <map>

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(Schema, RefusesDoubleAndEmptyNames) {
  EXPECT_NE(message_of([] {
              Schema{{.name = "a"}, {.name = "a"}};
            }).find("'a' twice"),
            std::string::npos);
  EXPECT_THROW((Schema{{.name = ""}}), Error);
  Schema schema{{.name = "a", .dtype = DType::int8, .shape = {-1}}, text_field("b")};
  EXPECT_NE(message_of([&] {
              schema.at("c");
            }).find("there is no field 'c'; there are: a int8 [-1], b text"),
            std::string::npos);
}

TEST(Sample, ChecksWhatIsPutIn) {
  Schema schema{{.name = "fixed", .dtype = DType::int32, .shape = {2}},
                {.name = "free", .dtype = DType::int32, .shape = {-1, 3}},
                text_field("text")};
  Sample sample(schema);
  EXPECT_THROW(sample["fixed"], Error) << "not filled yet";
  EXPECT_THROW(sample.out("free"), Error) << "needs a shape";
  EXPECT_THROW(sample.resize("free", {2, 4}), Error);
  EXPECT_THROW(sample.set("fixed", Array::empty(DType::int64, {2})), Error);
  EXPECT_THROW(sample.set_text("fixed", "x"), Error);
  EXPECT_EQ(sample.first_unfilled(), 0);
  Array given = Array::empty(DType::int32, {4, 3});
  sample.set("free", given);
  EXPECT_EQ(sample["free"].data(), given.data()) << "taken without a copy";
  sample.out("fixed").as<std::int32_t>()[0] = 5;
  sample.set_text("text", "");
  EXPECT_EQ(sample.text("text"), "");
  EXPECT_EQ(sample.first_unfilled(), -1);
  sample.restart();
  EXPECT_EQ(sample.first_unfilled(), 0);
}

#if MILLRACE_PYTHON_TORCH
TEST(Split, EqualsTorchsRandomSplit) {
  std::string expected = run_python(R"(
import torch
from torch.utils.data import random_split
for n in (2, 10, 600, 100003):
    for fraction in (0.05, 0.3):
        for seed in (0, 42, 2**40 + 1):
            train = int((1 - fraction) * n)
            if train == 0 or train == n: continue
            a, b = random_split(range(n), [train, n - train], torch.Generator().manual_seed(seed))
            print(n, fraction, seed, *a.indices, '|', *b.indices)
)");
  std::string actual;
  for (std::int64_t n : {2, 10, 600, 100003}) {
    for (double fraction : {0.05, 0.3}) {
      for (std::uint64_t seed :
           {std::uint64_t{0}, std::uint64_t{42}, (std::uint64_t{1} << 40) + 1}) {
        auto [train, valid] = random_split(Numbers(n), {.valid_fraction = fraction, .seed = seed});
        actual += std::to_string(n) + (fraction == 0.3 ? " 0.3 " : " 0.05 ") + std::to_string(seed);
        for (std::int64_t index : train.indices()) actual += " " + std::to_string(index);
        actual += " |";
        for (std::int64_t index : valid.indices()) actual += " " + std::to_string(index);
        actual += "\n";
      }
    }
  }
  EXPECT_TRUE(actual == expected) << actual.substr(0, 300) << "\n" << expected.substr(0, 300);
}
#endif

TEST(Split, RefusesEmptyPartsAndNamesTheNumbers) {
  std::string message = message_of([] { random_split(Numbers(1), {.valid_fraction = 0.05}); });
  EXPECT_NE(message.find("of 1 samples gives 0 for training and 1 for validation"),
            std::string::npos)
      << message;
  EXPECT_THROW(random_split(Numbers(0)), Error);
  EXPECT_THROW(random_split(Numbers(10), {.valid_fraction = 0}), Error);
  EXPECT_THROW(random_split(Numbers(10), {.valid_fraction = 1}), Error);
  EXPECT_NE(message_of([] {
              random_parts(Numbers(10), {3, 8});
            }).find("11 samples in all, but the dataset has 10"),
            std::string::npos);
  EXPECT_EQ(random_parts(Numbers(10), {0, 10})[0].size(), 0);
  EXPECT_THROW(Subset(Numbers(10), {10}), Error);
}

TEST(Map, ChangesSamplesInPlace) {
  auto doubled = map(Numbers(20), [](Sample& sample, const LoadContext&) {
    sample["number"].as<std::int64_t>()[0] *= 2;
  });
  Loader loader(doubled, {.batch_size = 5, .threads = 2});
  EXPECT_EQ(numbers_in(*loader.next()), (std::vector<std::int64_t>{0, 2, 4, 6, 8}));
}

TEST(Map, MakesSamplesOfAnotherSchemaAndItsErrorsAreTheSamples) {
  CapturedLog log;
  Schema schema{{.name = "length", .dtype = DType::int64, .shape = {}}};
  auto lengths = map(Numbers(40), schema, [](const Sample& in, Sample& out, const LoadContext& c) {
    if (c.index == 7) throw std::runtime_error("seven");
    out.out("length").as<std::int64_t>()[0] = in["ragged"].elements();
  });
  Loader loader(lengths, {.batch_size = 5, .threads = 2});
  auto batch = loader.next();
  auto values = (*batch)["length"].as<const std::int64_t>();
  EXPECT_EQ(std::vector<std::int64_t>(values.begin(), values.end()),
            (std::vector<std::int64_t>{0, 1, 2, 3, 4}));
  loader.next();
  ASSERT_EQ(loader.ledger().size(), 1);
  EXPECT_EQ(loader.ledger().records()[0].reason, "seven");
}

TEST(Mixture, KeepsTheSharesOverEveryStretch) {
  Mixture mixed({{Numbers(1000), 3.0}, {Numbers(50), 1.0}, {Numbers(10), 1.0}}, {.size = 5000});
  std::array<int, 3> counts{};
  for (std::int64_t i = 0; i < mixed.size(); ++i) {
    ++counts[static_cast<std::size_t>(mixed.choose(i, 0).part)];
    EXPECT_NEAR(counts[0], 0.6 * static_cast<double>(i + 1), 2);
    EXPECT_NEAR(counts[1], 0.2 * static_cast<double>(i + 1), 2);
  }
  EXPECT_EQ(counts[0] + counts[1] + counts[2], 5000);
}

TEST(Mixture, ShowsEverySampleOfAPartBeforeAnyTwice) {
  Mixture mixed({{Numbers(30), 1.0}, {Numbers(100), 1.0}}, {.size = 60});
  std::map<std::int64_t, int> small, large;
  for (std::int64_t epoch = 0; epoch < 10; ++epoch) {
    for (std::int64_t i = 0; i < 60; ++i) {
      auto choice = mixed.choose(i, epoch);
      ++(choice.part == 0 ? small : large)[choice.index];
    }
  }
  EXPECT_EQ(small.size(), 30U);
  EXPECT_EQ(large.size(), 100U);
  for (const auto& [index, count] : small) EXPECT_EQ(count, 10);
  for (const auto& [index, count] : large) EXPECT_EQ(count, 3);
}

TEST(Mixture, LoadsThroughTheLoaderTheSameForAnyThreads) {
  auto run = [](int threads) {
    Mixture mixed({{Numbers(30), 2.0}, {Numbers(100), 1.0}});
    Loader loader(mixed, {.batch_size = 8, .shuffle = true, .threads = threads});
    auto all = fingerprints(loader);
    for (auto& batch : fingerprints(loader)) all.push_back(batch);
    return all;
  };
  EXPECT_EQ(run(1), run(4));
}

TEST(Mixture, RecordsTheFailingSampleOfThePartAndGoesOn) {
  CapturedLog log;
  auto part = std::make_shared<Numbers>(10);
  part->before_load = [](std::int64_t index, const LoadContext&) -> Status {
    return index == 4 ? Status(Error("broken").at("part/4")) : Status();
  };
  Loader loader(Mixture({{part, 1.0}, {Numbers(100), 1.0}}, {.size = 40}),
                {.batch_size = 8, .shuffle = true, .threads = 2});
  for (int epoch = 0; epoch < 4; ++epoch) EXPECT_EQ(fingerprints(loader).size(), 5U);
  ASSERT_EQ(loader.ledger().size(), 1);
  EXPECT_EQ(loader.ledger().records()[0].source, "part/4");
}

TEST(Mixture, RefusesWhatCannotBeMixed) {
  Mapped other = map(Numbers(5), Schema{{.name = "x", .shape = {}}},
                     [](const Sample&, Sample&, const LoadContext&) {});
  EXPECT_NE(message_of([&] {
              Mixture({{Numbers(5), 1.0}, {other, 1.0}});
            }).find("different fields"),
            std::string::npos);
  EXPECT_THROW(Mixture({{Numbers(5), 0.0}}), Error);
  EXPECT_THROW(Mixture({{Numbers(0), 1.0}}), Error);
  EXPECT_THROW(Mixture({}), Error);
}

}  // namespace
}  // namespace millrace
