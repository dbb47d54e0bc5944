// A bad sample is not a bad run: what fails is replaced by rule, recorded once, and bounded.
#include "tests/pipeline/numbers.h"
#include "tests/reference.h"

#include <millrace/pipeline/data/mixture.h>
#include <millrace/pipeline/loader/loader.h>

#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

namespace millrace {
namespace {

bool is_bad(std::int64_t index) {
  return index % 20 == 7;
}  // 5 %

std::shared_ptr<Numbers> with_bad_samples(std::int64_t size) {
  auto data = std::make_shared<Numbers>(size);
  data->before_load = [](std::int64_t index, const LoadContext&) -> Status {
    if (is_bad(index)) {
      return Error("cannot decode (broken)").at("clips/" + std::to_string(index)).stage("video");
    }
    return {};
  };
  return data;
}

std::vector<std::string> lines_of(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// Must show: full batches, each bad sample listed once, the same batches after a resume.
TEST(LoaderErrors, ReplacesFivePercentAndListsEachOnce) {
  TemporaryFolder folder;
  CapturedLog log;
  LoaderOptions options{.batch_size = 16, .shuffle = true, .threads = 2};
  options.errors.ledger = folder / "errors.jsonl";
  std::vector<std::string> expected;
  {
    Loader loader(with_bad_samples(400), options);
    for (int epoch = 0; epoch < 2; ++epoch) {
      for (const Batch& batch : loader) {
        EXPECT_EQ(batch.size(), 16);
        for (std::int64_t number : numbers_in(batch)) EXPECT_FALSE(is_bad(number));
        for (std::int64_t index : batch.indices()) EXPECT_FALSE(is_bad(index));
        expected.push_back(fingerprint(batch));
      }
    }
    EXPECT_EQ(loader.stats().bad_samples, 20);
    EXPECT_EQ(loader.stats().replaced, 40);
    EXPECT_EQ(loader.ledger().records().size(), 20U);
    EXPECT_EQ(loader.ledger().records()[0].stage, "video");
    EXPECT_EQ(loader.ledger().records()[0].reason, "cannot decode (broken)");
  }
  auto lines = lines_of(folder / "errors.jsonl");
  EXPECT_EQ(lines.size(), 20U);
  EXPECT_EQ(std::set<std::string>(lines.begin(), lines.end()).size(), 20U);
  EXPECT_EQ(log.count("cannot decode (broken); replaced, see"), 20);

  // Stop in the middle, twice, and go on.
  for (int stop : {3, 30}) {
    std::filesystem::remove(folder / "errors.jsonl");
    std::vector<std::string> batches;
    options.position.reset();
    {
      Loader first(with_bad_samples(400), options);
      while (static_cast<int>(batches.size()) < stop) {
        if (auto batch = first.next()) batches.push_back(fingerprint(*batch));
      }
      options.position = first.position();
    }
    auto data = with_bad_samples(400);
    auto known = std::make_shared<std::set<std::int64_t>>();
    {
      Loader second(data, options);
      for (const BadSample& bad : second.ledger().records()) known->insert(bad.index);
      auto tried_again = std::make_shared<std::atomic<int>>(0);
      auto fails = data->before_load;
      data->before_load = [=](std::int64_t index, const LoadContext& context) -> Status {
        if (known->contains(index)) ++*tried_again;
        return fails(index, context);
      };
      while (batches.size() < expected.size()) {
        if (auto batch = second.next()) batches.push_back(fingerprint(*batch));
      }
      EXPECT_EQ(*tried_again, 0) << "known-bad samples are remembered, not opened again";
    }
    EXPECT_GT(known->size(), 0U);
    EXPECT_EQ(batches, expected) << "stopped after " << stop;
    EXPECT_EQ(lines_of(folder / "errors.jsonl").size(), 20U);
  }
}

TEST(LoaderErrors, AreTheSameForAnyThreadsAndPrefetch) {
  CapturedLog log;
  auto run = [](int threads, int prefetch) {
    Loader loader(with_bad_samples(300),
                  {.batch_size = 16, .shuffle = true, .prefetch = prefetch, .threads = threads});
    auto all = fingerprints(loader);
    for (const BadSample& bad : loader.ledger().records()) {
      all.push_back(bad.source + "@" + std::to_string(bad.position));
    }
    return all;
  };
  auto expected = run(1, 1);
  for (int threads : {2, 4, 8}) EXPECT_EQ(run(threads, threads), expected);
}

TEST(LoaderErrors, AllBadEndsWithAClearErrorInBoundedTime) {
  auto data = std::make_shared<Numbers>(100'000);
  data->before_load = [](std::int64_t, const LoadContext&) -> Status {
    return Error("the disk is gone").stage("read");
  };
  CapturedLog log;
  Loader loader(data, {.batch_size = 32, .shuffle = true, .threads = 2});
  auto started = std::chrono::steady_clock::now();
  std::string message = message_of([&] { loader.next(); });
  EXPECT_NE(message.find("the disk is gone"), std::string::npos) << message;
  EXPECT_NE(message.find("replacements failed"), std::string::npos) << message;
  EXPECT_LT(std::chrono::steady_clock::now() - started, std::chrono::seconds(5));
  EXPECT_EQ(message_of([&] { loader.next(); }), message) << "it stays failed";
}

TEST(LoaderErrors, EndTheRunWhenThereAreMoreThanTheBudgetAllows) {
  CapturedLog log;
  auto run = [](ErrorPolicy policy) {
    return message_of([&] {
      Loader loader(with_bad_samples(400),
                    {.batch_size = 16, .shuffle = true, .threads = 2, .errors = policy});
      fingerprints(loader);
    });
  };
  EXPECT_EQ(run({.max_fraction = 0.05}), "");
  std::string message = run({.max_fraction = 0.04});
  EXPECT_NE(message.find("17 of 400 samples are bad, more than max_fraction (0.04"),
            std::string::npos)
      << message;
  EXPECT_NE(message.find("clips/"), std::string::npos) << message;
  message = run({.max_fraction = 0.04, .max_name = "--max-error-share"});
  EXPECT_NE(message.find("more than --max-error-share (0.04"), std::string::npos) << message;
  EXPECT_EQ(run({.max_count = 20}), "");
  EXPECT_NE(run({.max_count = 19}).find("20 of 400 samples are bad, more than max_count (19)"),
            std::string::npos);
}

TEST(LoaderErrors, StopAtTheFirstInFailMode) {
  CapturedLog log;
  Loader loader(with_bad_samples(400), {.batch_size = 4, .threads = 2, .errors = {.fail = true}});
  EXPECT_TRUE(loader.next());
  EXPECT_EQ(message_of([&] { loader.next(); }), "clips/7: video: cannot decode (broken)");
}

TEST(LoaderErrors, CatchWhatADatasetThrows) {
  CapturedLog log;
  auto data = std::make_shared<Numbers>(40);
  data->before_load = [](std::int64_t index, const LoadContext&) -> Status {
    if (index == 3) throw std::runtime_error("out of luck");
    if (index == 5) throw 42;  // NOLINT: what a careless dataset may do
    return {};
  };
  Loader loader(data, {.batch_size = 8, .threads = 2});
  EXPECT_EQ(fingerprints(loader).size(), 5U);
  auto records = loader.ledger().records();
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].source, "sample 3");
  EXPECT_EQ(records[0].reason, "out of luck");
}

class Forgetful : public Numbers {
 public:
  using Numbers::Numbers;
  Status load(std::int64_t index, const LoadContext& context, Sample& sample) const override {
    if (index != 6) return Numbers::load(index, context, sample);
    sample.out("number").as<std::int64_t>()[0] = index;
    return {};
  }
};

TEST(LoaderErrors, SeeAFieldThatTheDatasetDidNotFill) {
  Loader loader(Forgetful(20), {.batch_size = 4, .threads = 2, .errors = {.fail = true}});
  std::string message = message_of([&] { fingerprints(loader); });
  EXPECT_EQ(message, "sample 6: the dataset did not fill the field 'noise'");
}

TEST(LoaderErrors, TransientOnesAreTriedAgainInTheNextEpochButListedOnce) {
  CapturedLog log;
  auto data = std::make_shared<Numbers>(40);
  auto tries = std::make_shared<std::atomic<int>>(0);
  data->before_load = [tries](std::int64_t index, const LoadContext& context) -> Status {
    if (index != 11) return {};
    ++*tries;
    if (context.epoch < 2) return Error("the network is slow").transient();
    return {};
  };
  Loader loader(data, {.batch_size = 8, .threads = 2});
  for (int epoch = 0; epoch < 3; ++epoch) fingerprints(loader);
  EXPECT_GE(*tries, 3);
  EXPECT_EQ(loader.ledger().size(), 1);
}

TEST(Ledger, SurvivesATornLastLineAndAForeignLine) {
  TemporaryFolder folder;
  CapturedLog log;
  {
    Ledger ledger(folder / "errors.jsonl");
    EXPECT_TRUE(ledger.add({.source = "a", .stage = "load", .reason = "r", .index = 1}));
    EXPECT_FALSE(ledger.add({.source = "a", .stage = "load", .reason = "r", .index = 1}));
    EXPECT_TRUE(ledger.add(
        {.source = std::string("b\xFF\n"), .stage = "load", .reason = "\xFE", .index = 2}));
  }
  std::ofstream(folder / "errors.jsonl", std::ios::app) << "not json\n"
                                                        << R"({"source":"c","st)";
  {
    Ledger ledger(folder / "errors.jsonl", true);
    EXPECT_EQ(ledger.size(), 2);
    EXPECT_TRUE(ledger.knows(1));
    EXPECT_TRUE(ledger.knows(2));
    EXPECT_FALSE(ledger.knows(3));
    EXPECT_FALSE(
        ledger.add({.source = std::string("b\xFF\n"), .stage = "", .reason = "", .index = 2}));
    EXPECT_TRUE(ledger.add({.source = "d", .stage = "load", .reason = "r", .index = 4}));
  }
  Ledger again(folder / "errors.jsonl", true);
  EXPECT_EQ(again.size(), 3);
  EXPECT_EQ(log.count("not a ledger record"), 2);
}

TEST(Ledger, AFreshRunKeepsTheOldFileAside) {
  TemporaryFolder folder;
  { Ledger(folder / "errors.jsonl").add({.source = "a", .stage = "s", .reason = "r", .index = 1}); }
  Ledger fresh(folder / "errors.jsonl");
  EXPECT_EQ(fresh.size(), 0);
  EXPECT_EQ(lines_of(folder / "errors.jsonl.previous").size(), 1U);
}

TEST(Ledger, ReadsWhatTheOtherRanksFound) {
  TemporaryFolder folder;
  CapturedLog log;
  for (std::int64_t rank : {0, 1}) {
    LoaderOptions options{.batch_size = 8, .shuffle = true, .threads = 2, .rank = rank, .world = 2};
    options.errors.ledger = folder / "errors.jsonl";
    Loader loader(with_bad_samples(400), options);
    fingerprints(loader);
  }
  EXPECT_TRUE(std::filesystem::exists(folder / "errors.rank1.jsonl"));
  LoaderOptions options{.batch_size = 8, .threads = 2, .position = Position{}};
  options.errors.ledger = folder / "errors.jsonl";
  Loader loader(with_bad_samples(400), options);
  EXPECT_EQ(loader.ledger().size(), 20);
}

TEST(Ledger, OfRankOneHasTheRankInItsNameOnce) {
  TemporaryFolder folder;
  CapturedLog log;
  LoaderOptions options{.batch_size = 8, .threads = 2, .rank = 1, .world = 2};
  options.errors.ledger = folder / "errors.jsonl";
  Loader loader(with_bad_samples(400), options);
  fingerprints(loader);
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    files.push_back(entry.path().filename().string());
  }
  EXPECT_EQ(files, std::vector<std::string>{"errors.rank1.jsonl"});
}

TEST(Ledger, SaysWhereItCannotBeWritten) {
  LoaderOptions options{.batch_size = 8};
  options.errors.ledger = "/proc/nowhere/errors.jsonl";
  std::string message = message_of([&] { Loader(Numbers(10), options); });
  EXPECT_NE(message.find("/proc/nowhere/errors.jsonl: ledger: cannot open"), std::string::npos)
      << message;
}

}  // namespace
}  // namespace millrace
