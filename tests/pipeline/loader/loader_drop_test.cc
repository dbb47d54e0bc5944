// Bad samples that are left out instead of replaced: nothing is made up, nothing is lost, and what
// is there does not depend on threads.
#include "tests/pipeline/loader/simulated_device.h"
#include "tests/pipeline/numbers.h"
#include "tests/reference.h"

#include <millrace/pipeline/loader/loader.h>

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

namespace millrace {
namespace {

std::shared_ptr<Numbers> failing(std::int64_t size, bool (*bad)(std::int64_t)) {
  auto data = std::make_shared<Numbers>(size);
  data->before_load = [bad](std::int64_t index, const LoadContext&) -> Status {
    if (bad(index)) return Error("broken").at("f" + std::to_string(index));
    return {};
  };
  return data;
}

LoaderOptions dropping(std::int64_t batch_size, int threads = 2) {
  LoaderOptions options{.batch_size = batch_size, .threads = threads};
  options.errors.drop = true;
  options.errors.max_fraction = 1;
  return options;
}

bool every_third(std::int64_t index) {
  return index % 3 == 1;
}

TEST(LoaderDrop, KeepsEveryGoodSampleOnceAndInOrder) {
  CapturedLog log;
  auto data = failing(100, every_third);
  Loader loader(data, dropping(8));
  std::vector<std::int64_t> seen, expected, dropped;
  for (std::int64_t i = 0; i < 100; ++i) {
    if (!every_third(i)) expected.push_back(i);
  }
  for (const Batch& batch : loader) {
    EXPECT_EQ(batch.size(), static_cast<std::int64_t>(batch.indices().size()));
    auto numbers = numbers_in(batch);
    ASSERT_TRUE(std::ranges::equal(numbers, batch.indices()));
    for (const BadSample& bad : batch.dropped()) {
      EXPECT_EQ(bad.source, "f" + std::to_string(bad.index));
      dropped.push_back(bad.index);
    }
    ASSERT_EQ(batch.list("ragged").size(), numbers.size());
    ASSERT_EQ(batch.texts("name").size(), numbers.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      EXPECT_EQ(batch.texts("name")[i], "n" + std::to_string(numbers[i]));
      EXPECT_EQ(batch.list("ragged")[i].elements(), numbers[i] % 5);
      seen.push_back(numbers[i]);
    }
  }
  EXPECT_EQ(seen, expected);
  EXPECT_EQ(dropped.size(), 33U);
  EXPECT_TRUE(std::ranges::is_sorted(dropped));
  EXPECT_EQ(data->loads->load(), 100);  // no replacement was ever tried
  EXPECT_EQ(loader.stats().samples, 67);
  EXPECT_EQ(loader.stats().dropped, 33);
  EXPECT_EQ(loader.stats().replaced, 0);
  EXPECT_EQ(loader.ledger().size(), 33);
  EXPECT_EQ(log.count("; left out"), 20);
}

TEST(LoaderDrop, DoesNotDependOnThreadsOrPrefetch) {
  CapturedLog log;
  LoaderOptions plain = dropping(7, 1);
  plain.shuffle = true;
  Loader one(failing(200, every_third), plain);
  std::vector<std::string> expected = fingerprints(one);
  for (int threads : {2, 5}) {
    LoaderOptions options = plain;
    options.threads = threads;
    options.prefetch = threads * 2;
    Loader other(failing(200, every_third), options);
    EXPECT_EQ(fingerprints(other), expected) << threads;
  }
}

TEST(LoaderDrop, GivesAnEmptyBatchRatherThanNone) {
  CapturedLog log;
  LoaderOptions options = dropping(4);
  options.collate = {{"ragged", Collate::pad(-1)}};
  Loader loader(failing(12, [](std::int64_t i) { return i >= 4 && i < 8; }), options);
  std::vector<std::int64_t> sizes;
  for (const Batch& batch : loader) {
    sizes.push_back(batch.size());
    EXPECT_EQ(batch["number"].shape()[0], batch.size());
    EXPECT_EQ(batch["ragged"].shape()[0], batch.size());
    EXPECT_EQ(batch.lengths("ragged").elements(), batch.size());
    EXPECT_EQ(batch.mask("ragged").shape()[0], batch.size());
    EXPECT_EQ(batch.texts("name").size(), static_cast<std::size_t>(batch.size()));
  }
  EXPECT_EQ(sizes, (std::vector<std::int64_t>{4, 0, 4}));
}

TEST(LoaderDrop, DoesNotTryAgainWhatTheLedgerKnows) {
  CapturedLog log;
  TemporaryFolder folder;
  LoaderOptions options = dropping(8);
  options.errors.ledger = folder / "errors.jsonl";
  std::vector<std::string> expected;
  {
    Loader loader(failing(50, every_third), options);
    expected = fingerprints(loader);
  }
  auto data = failing(50, every_third);
  options.position = Position{};
  Loader again(data, options);
  std::vector<std::string> resumed;
  std::size_t dropped = 0;
  for (const Batch& batch : again) {
    resumed.push_back(fingerprint(batch));
    for (const BadSample& bad : batch.dropped()) EXPECT_EQ(bad.reason, "broken");
    dropped += batch.dropped().size();
  }
  EXPECT_EQ(resumed, expected);
  EXPECT_EQ(dropped, 17U);
  EXPECT_EQ(data->loads->load(), 33);
  EXPECT_EQ(again.ledger().size(), 17);
}

TEST(LoaderDrop, StillEndsTheRunAtTheLimit) {
  CapturedLog log;
  LoaderOptions options = dropping(8);
  options.errors.max_count = 5;
  Loader loader(failing(50, every_third), options);
  std::string message = message_of([&] {
    while (loader.next()) {
    }
  });
  EXPECT_NE(message.find("more than max_count (5) allows"), std::string::npos) << message;
}

// Rows of pictures that become float on the host are moved as floats.
class Pictures : public Dataset {
 public:
  std::int64_t size() const override { return 30; }
  const Schema& schema() const override { return schema_; }
  Status load(std::int64_t index, const LoadContext&, Sample& sample) const override {
    std::ranges::fill(sample.out("image").as<std::uint8_t>(), static_cast<std::uint8_t>(index));
    if (index % 4 == 2) return Error("broken after it was filled");
    return {};
  }

 private:
  Schema schema_{{.name = "image", .dtype = DType::uint8, .shape = {5, 4, 3}}};
};

TEST(LoaderDrop, MovesConvertedAndTransferredRows) {
  CapturedLog log;
  for (bool on_device : {false, true}) {
    LoaderOptions options = dropping(8);
    options.to_float = {{"image", ToFloat::unit()}};
    auto device = std::make_shared<SimulatedDevice>();
    if (on_device) options.device = device;
    Loader loader(Pictures(), options);
    std::int64_t rows = 0;
    while (auto batch = loader.next()) {
      const Array& image = (*batch)["image"];
      ASSERT_EQ(image.shape(), (Shape{batch->size(), 3, 5, 4}));
      batch->wait_on(nullptr);
      device->synchronise();
      const auto* value = reinterpret_cast<const float*>(image.data());
      for (std::int64_t index : batch->indices()) {
        for (int i = 0; i < 60; ++i) EXPECT_NEAR(*value++, static_cast<float>(index) / 255, 1e-6);
        ++rows;
      }
    }
    EXPECT_EQ(rows, 23);
    EXPECT_EQ(loader.stats().samples, 23);
  }
}

}  // namespace
}  // namespace millrace
