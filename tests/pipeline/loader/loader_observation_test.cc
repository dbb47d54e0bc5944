// What a loader tells of itself: why it waits, what it needs, what it did, and what it refuses.
#include "tests/pipeline/numbers.h"
#include "tests/reference.h"

#include <millrace/pipeline/loader/loader.h>

#include <fstream>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace millrace {
namespace {

using std::chrono::milliseconds;

TEST(LoaderPreflight, RefusesWhatCannotWorkAndNamesTheNumbers) {
  CapturedLog log;
  auto refusal = [](std::int64_t size, LoaderOptions options) {
    return message_of([&] { Loader(Numbers(size), std::move(options)); });
  };
  auto expect = [](const std::string& message, const std::string& part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  expect(refusal(0, {}), "the dataset is empty (size 0)");
  expect(refusal(30, {.batch_size = 32, .tail = Tail::drop}),
         "batch_size 32 x 1 ranks), the dataset has 30");
  expect(refusal(30, {.batch_size = -1}), "batch_size must be at least 1, but is -1");
  expect(refusal(30, {.prefetch = 0}), "prefetch must be 1 to 4096 batches, but is 0");
  expect(refusal(30, {.threads = -2}), "threads must not be negative, but is -2");
  expect(refusal(30, {.threads = 2, .pool = std::make_shared<Pool>(1)}), "not both");
  expect(refusal(30, {.rank = 2, .world = 2}), "rank must be less than world (2), but is 2");
  expect(refusal(30, {.position = Position{.next = 31}}), "next 31} is not in a dataset of 30");
  expect(refusal(30, {.collate = {{"colour", Collate::pad()}}}), "there is no field 'colour'");
  expect(refusal(30, {.collate = {{"number", Collate::pad()}}}), "has a fixed shape");
  expect(refusal(30, {.collate = {{"ragged", Collate::pad_to_longest(1)}}}), "has no axis 1");
  expect(refusal(30, {.to_float = {{"number", ToFloat::unit()}}}), "must be uint8 of fixed shape");
  expect(refusal(30, {.errors = {.max_fraction = 2}}), "max_fraction must lie between 0 and 1");
  expect(refusal(30, {.errors = {.max_attempts = 0}}), "max_attempts must be at least 1");
}

class Pictures : public Dataset {
 public:
  std::int64_t size() const override { return 1000; }
  const Schema& schema() const override { return schema_; }
  Status load(std::int64_t, const LoadContext&, Sample& sample) const override {
    sample.out("image");
    sample.resize("tokens", {1000});
    return {};
  }
  Schema schema_{{.name = "image", .dtype = DType::uint8, .shape = {100, 100, 3}},
                 {.name = "tokens", .dtype = DType::int64, .shape = {-1}}};
};

TEST(LoaderMemory, IsPredictedPrintedAndBounded) {
  CapturedLog log;
  // 5 slots x 10 rows x 30,000 bytes
  Loader loader(Pictures(), {.batch_size = 10});
  EXPECT_EQ(loader.stats().predicted_bytes, 1'500'000);
  EXPECT_EQ(log.count("peak memory 1.5 MB (5 slots x 10 rows), plus fields of unknown size"), 1);
  std::string message =
      message_of([] { Loader(Pictures(), {.batch_size = 10, .max_bytes = 1'000'000}); });
  EXPECT_NE(
      message.find("1.5 MB (5 slots x 10 rows), plus fields of unknown size is over max_bytes "
                   "(1.0 MB); lower prefetch or batch_size"),
      std::string::npos)
      << message;
  // Fields of variable shape count when they come: 50 rows x 8,000 bytes do not fit in 100 kB.
  Loader tight(Pictures(), {.batch_size = 10, .max_bytes = 1'600'000});
  EXPECT_NE(message_of([&] {
              for (const Batch& batch : tight) (void)batch;
            }).find("more than the 100000 bytes that max_bytes leaves"),
            std::string::npos);
  Loader roomy(Pictures(), {.batch_size = 10, .max_bytes = 2'100'000});
  for (const Batch& batch : roomy) EXPECT_EQ(batch.size(), 10);
}

TEST(LoaderWatchdog, NamesTheStageAndTheSampleThatBlock) {
  CapturedLog log;
  auto data = std::make_shared<Numbers>(8);
  data->before_load = [](std::int64_t index, const LoadContext&) -> Status {
    if (index == 5) std::this_thread::sleep_for(milliseconds(400));
    return {};
  };
  Loader loader(data, {.batch_size = 4, .threads = 2, .stall_warning = milliseconds(100)});
  fingerprints(loader);
  EXPECT_GE(log.count("waiting: batch 1 is at stage 'load': row 1, sample 5 (sample 5) for 0."), 1)
      << log.text();
}

TEST(LoaderWatchdog, EndsTheRunAfterTheTimeoutAsked) {
  CapturedLog log;
  auto data = std::make_shared<Numbers>(8);
  data->before_load = [](std::int64_t index, const LoadContext& context) -> Status {
    while (index == 2 && !context.cancelled()) std::this_thread::sleep_for(milliseconds(1));
    return {};
  };
  Loader loader(data, {.batch_size = 4, .threads = 2, .stall_timeout = milliseconds(150)});
  std::string message = message_of([&] { loader.next(); });
  EXPECT_NE(message.find("stalled: batch 0 is at stage 'load': row 2, sample 2"), std::string::npos)
      << message;
}

TEST(LoaderWatchdog, SeesAConsumerThatHoldsEveryBatch) {
  CapturedLog log;
  Loader loader(Numbers(100),
                {.batch_size = 4, .prefetch = 2, .threads = 2, .stall_warning = milliseconds(50)});
  std::vector<Batch> hoard;
  std::string message = message_of([&] {
    while (auto batch = loader.next()) hoard.push_back(*batch);
  });
  EXPECT_EQ(hoard.size(), 3U);
  EXPECT_NE(message.find("the consumer holds all 3 batches (prefetch + 1)"), std::string::npos);
}

TEST(LoaderStats, TellsADataBoundRunFromAComputeBoundOne) {
  auto verdict = [](milliseconds load, milliseconds step) {
    auto data = std::make_shared<Numbers>(24);
    data->before_load = [load](std::int64_t, const LoadContext&) -> Status {
      std::this_thread::sleep_for(load);
      return {};
    };
    Loader loader(data, {.batch_size = 4, .threads = 2});
    for (const Batch& batch : loader.cycle()) {
      std::this_thread::sleep_for(step);
      if (batch.position().epoch == 3) break;
    }
    return loader.stats();
  };
  LoaderStats slow_data = verdict(milliseconds(5), milliseconds(0));
  EXPECT_GT(slow_data.data_wait_share(), 0.8);
  EXPECT_EQ(slow_data.verdict().find("data-bound: "), 0U) << slow_data.verdict();
  LoaderStats slow_step = verdict(milliseconds(0), milliseconds(10));
  EXPECT_LT(slow_step.data_wait_share(), 0.2);
  EXPECT_GT(slow_step.slot_wait_seconds, slow_step.consumer_wait_seconds);
}

TEST(LoaderStats, CountsStagesBytesAndPercentiles) {
  auto data = std::make_shared<Numbers>(100);
  data->before_load = [](std::int64_t index, const LoadContext&) -> Status {
    std::this_thread::sleep_for(milliseconds(index % 50 == 0 ? 20 : 1));
    return {};
  };
  Loader loader(data, {.batch_size = 10, .threads = 2, .collate = {{"ragged", Collate::pad()}}});
  for (const Batch& batch : loader) (void)batch;
  LoaderStats stats = loader.stats();
  EXPECT_EQ(stats.batches, 10);
  EXPECT_EQ(stats.samples, 100);
  // number and noise, ragged padded to 4, and names of 2 or 3 letters
  EXPECT_EQ(stats.bytes, 100 * (8 + 4 + 4 * 4) + 10 * 2 + 90 * 3);
  ASSERT_EQ(stats.stages.size(), 3U);
  EXPECT_EQ(stats.stages[0].name, "load");
  EXPECT_EQ(stats.stages[0].count, 100);
  EXPECT_GT(stats.stages[0].p50_us, 900);
  EXPECT_LT(stats.stages[0].p50_us, 15'000);
  EXPECT_GT(stats.stages[0].p99_us, 15'000);
  EXPECT_LT(stats.stages[0].cpu_seconds, 0.5 * stats.stages[0].wall_seconds) << "it slept";
  EXPECT_EQ(stats.stages[1].count, 10);
  EXPECT_NE(to_string(stats).find("10 batches, 100 samples"), std::string::npos);
}

TEST(LoaderGraph, IsShownAsDot) {
  Loader loader(Numbers(10), {.batch_size = 3});
  std::string dot = loader.dump_graph();
  for (const char* part : {"digraph", "row 0", "row 2", "collate", "transfer", "publish"}) {
    EXPECT_NE(dot.find(part), std::string::npos) << dot;
  }
}

nlohmann::json trace_of(Loader& loader) {
  TemporaryFolder folder;
  loader.write_trace(folder / "trace.json");
  return nlohmann::json::parse(std::ifstream(folder / "trace.json"));
}

TEST(LoaderTrace, HasOneEventPerSampleAndBatch) {
  Loader loader(Numbers(40), {.batch_size = 8, .threads = 2, .trace = true});
  fingerprints(loader);
  int loads = 0, collates = 0, names = 0;
  nlohmann::json trace = trace_of(loader);
  for (const auto& event : trace["traceEvents"]) {
    loads += event["name"] == "load" ? 1 : 0;
    collates += event["name"] == "collate" ? 1 : 0;
    names += event["name"] == "thread_name" ? 1 : 0;
  }
  EXPECT_EQ(loads, 40);
  EXPECT_EQ(collates, 5);
  EXPECT_EQ(names, 3);
  Loader silent(Numbers(4), {.batch_size = 2});
  EXPECT_THROW(silent.write_trace("/tmp/never.json"), Error);
}

// Must show: a sample of 500 ms delays only its own batch. Read off the trace: by the time it is
// loaded, all that the slots can hold of the batches behind it has been loaded too.
TEST(LoaderTrace, ASlowSampleDelaysOnlyItsOwnBatch) {
  auto data = std::make_shared<Numbers>(80);
  data->before_load = [](std::int64_t index, const LoadContext&) -> Status {
    std::this_thread::sleep_for(milliseconds(index == 9 ? 500 : 2));
    return {};
  };
  Loader loader(data, {.batch_size = 8, .prefetch = 4, .threads = 2, .trace = true});
  auto first = loader.next();
  EXPECT_EQ(numbers_in(*first)[0], 0);
  first.reset();
  auto slow = loader.next();
  EXPECT_EQ(numbers_in(*slow)[1], 9);
  slow.reset();
  auto before = std::chrono::steady_clock::now();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(loader.next()) << "ready already";
  EXPECT_LT(std::chrono::steady_clock::now() - before, milliseconds(100));

  double slow_end = 0;
  std::map<int, double> last_end;
  nlohmann::json trace = trace_of(loader);
  for (const auto& event : trace["traceEvents"]) {
    if (event["name"] != "load") continue;
    double end = event["ts"].get<double>() + event["dur"].get<double>();
    if (event["args"]["index"] == 9) slow_end = end;
    int batch = event["args"]["batch"];
    last_end[batch] = std::max(last_end[batch], end);
  }
  ASSERT_GT(slow_end, 0);
  for (int batch : {2, 3, 4}) EXPECT_LT(last_end[batch], slow_end) << "batch " << batch;
}

TEST(Log, CanBeTakenOverAndFiltered) {
  CapturedLog log;
  set_log_level(LogLevel::warning);
  millrace::log(LogLevel::info, "small talk");
  millrace::log(LogLevel::warning, "beware");
  set_log_level(LogLevel::info);
  EXPECT_EQ(log.text(), "beware\n");
}

}  // namespace
}  // namespace millrace
