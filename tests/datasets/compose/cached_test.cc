#include "tests/datasets/caches/cache_rows.h"
#include "tests/reference.h"

#include <millrace/datasets/compose/cached.h>
#include <millrace/datasets/tokens/token_memmap.h>
#include <millrace/pipeline/loader/loader.h>

#include <atomic>

#include <gtest/gtest.h>

namespace millrace {
namespace {

// Counts how often it is asked; every 10th sample is bad.
class Counting : public Dataset {
 public:
  explicit Counting(Schema schema) : schema_(std::move(schema)) {}
  std::int64_t size() const override { return 95; }
  const Schema& schema() const override { return schema_; }
  Status load(std::int64_t index, const LoadContext&, Sample& sample) const override {
    ++asked;
    if (is_bad(index)) return Error("cannot decode (broken)");
    for (const Field& field : schema_) sample.set(field.name, row_value(field, index));
    return {};
  }
  mutable std::atomic<int> asked{0};

 private:
  Schema schema_;
};

const Schema ragged{{.name = "tokens", .dtype = DType::int32, .shape = {-1}},
                    {.name = "image", .dtype = DType::uint8, .shape = {4, 4}},
                    text_field("caption")};
const Schema dense{{.name = "image", .dtype = DType::uint8, .shape = {4, 4}}};

void expect_all(const Dataset& dataset) {
  Sample sample(dataset.schema());
  for (std::int64_t i = 0; i < dataset.size(); ++i) {
    sample.restart();
    Status status = dataset.load(i, {.index = i}, sample);
    ASSERT_EQ(status.ok(), !is_bad(i)) << i;
    if (!status.ok()) {
      EXPECT_EQ(status.error().reason(), "cannot decode (broken)");
      continue;
    }
    for (const Field& field : dataset.schema()) {
      ASSERT_TRUE(same_elements(sample[field.name], row_value(field, i))) << i << field.name;
    }
  }
}

TEST(Cached, InMemoryLoadsEachSampleOnce) {
  auto counting = std::make_shared<Counting>(ragged);
  Cached cached(counting);
  expect_all(cached);
  EXPECT_EQ(counting->asked, 95);
  EXPECT_GT(cached.bytes(), 0);
  expect_all(cached);
  EXPECT_EQ(counting->asked, 95 + 10) << "only what failed is tried again";
}

TEST(Cached, InMemoryKeepsToItsLimit) {
  auto counting = std::make_shared<Counting>(dense);
  Cached cached(counting, {.max_bytes = 40 * 16});
  expect_all(cached);
  expect_all(cached);
  EXPECT_EQ(cached.bytes(), 40 * 16);
  EXPECT_EQ(counting->asked, 95 + 95 - 40);
}

TEST(Cached, InMemoryIsNotChangedByWhatAConsumerDoes) {
  Cached cached(std::make_shared<Counting>(ragged));
  expect_all(cached);
  Sample sample(cached.schema());
  ASSERT_TRUE(cached.load(1, {.index = 1}, sample).ok());
  std::ranges::fill(sample["image"].as<std::uint8_t>(), 77);  // fixed: a copy of its own
  EXPECT_THROW(sample["tokens"].as<std::int32_t>(), Error);   // variable: shared, read only
  expect_all(cached);
}

class CachedInAFile : public testing::TestWithParam<std::string> {};

TEST_P(CachedInAFile, IsMadeOnceAndOnlyReadLater) {
  TemporaryFolder folder;
  const Schema& schema = GetParam() == "x.arrow" ? ragged : dense;
  auto counting = std::make_shared<Counting>(schema);
  CachedOptions options{.file = folder / GetParam(), .options = {{"size", "4"}}};
  expect_all(Cached(counting, options));
  EXPECT_EQ(counting->asked, 95);
  expect_all(Cached(counting, options));
  EXPECT_EQ(counting->asked, 95);
  options.options["size"] = "8";
  EXPECT_THROW(Cached(counting, options), Error);
}

TEST_P(CachedInAFile, ServesALoader) {
  TemporaryFolder folder;
  const Schema& schema = GetParam() == "x.arrow" ? ragged : dense;
  Cached cached(std::make_shared<Counting>(schema), {.file = folder / GetParam()});
  Loader loader(cached, {.batch_size = 8, .shuffle = true});
  std::int64_t samples = 0;
  for (const Batch& batch : loader) {
    for (std::int64_t row = 0; row < batch.size(); ++row) {
      std::int64_t index = batch.indices()[static_cast<std::size_t>(row)];
      EXPECT_TRUE(same_elements(batch["image"].row(row), row_value(dense[0], index)));
      ++samples;
    }
  }
  EXPECT_EQ(samples, 95);
}

INSTANTIATE_TEST_SUITE_P(Files, CachedInAFile, testing::Values("x.arrow", "x.npy", "x.bin"));

TEST(TokenMemmap, ReadsWhatTheTrainersWriteWithNumpy) {
  TemporaryFolder folder;
  run_python(R"(
import sys, numpy as np
d = sys.argv[1]
v = np.memmap(d + '/indices.bin', np.int64, 'w+', shape=(30, 20)); v[:] = np.arange(600).reshape(30, 20); v.flush()
t = np.memmap(d + '/digits.bin', np.uint8, 'w+', shape=(30, 2)); t[:] = np.arange(60).reshape(30, 2) % 10; t.flush()
np.save(d + '/small.npy', np.arange(600).reshape(30, 20).astype(np.uint16))
np.save(d + '/digits.npy', np.asarray(t))
open(d + '/texts.txt', 'w').write(''.join('clip %d: é\n' % i for i in range(30)))
open(d + '/short.txt', 'w').write('one\n')
)",
             folder.path().string());
  TokenMemmap seeds(folder / "indices.bin",
                    {.shape = {20}, .rows = 30, .digits = folder / "digits.bin"});
  TokenMemmap small(folder / "small.npy",
                    {.dtype = DType::int64, .texts = folder / "texts.txt", .digits = {}});
  TokenMemmap alone(folder / "small.npy");
  TokenMemmap named(folder / "small.npy", {.digits = folder / "digits.npy"});
  EXPECT_EQ(alone.schema().size(), 1);
  EXPECT_EQ(alone.schema()[0].dtype, DType::uint16);
  Sample a(seeds.schema()), b(small.schema()), c(named.schema());
  for (std::int64_t i = 0; i < 30; ++i) {
    ASSERT_TRUE(seeds.load(i, {}, a).ok());
    ASSERT_TRUE(small.load(i, {}, b).ok());
    ASSERT_TRUE(named.load(i, {}, c).ok());
    EXPECT_EQ(a["video"].as<std::int64_t>()[19], 20 * i + 19);
    EXPECT_TRUE(same_elements(a["video"], b["video"]));
    std::string digits = std::to_string(2 * i % 10) + " " + std::to_string((2 * i + 1) % 10);
    EXPECT_EQ(a.text("text"), digits);
    EXPECT_EQ(c.text("text"), digits);
    EXPECT_EQ(b.text("text"), "clip " + std::to_string(i) + ": \u00e9");
  }
  EXPECT_THROW(TokenMemmap(folder / "small.npy", {.texts = folder / "short.txt"}), Error);
  EXPECT_THROW(TokenMemmap(folder / "indices.bin", {.shape = {21}}), Error);
  TokenMemmap narrow(folder / "small.npy", {.dtype = DType::uint8});
  Sample d(narrow.schema());
  EXPECT_TRUE(narrow.load(0, {}, d).ok());
  EXPECT_FALSE(narrow.load(20, {}, d).ok()) << "token 400 is not a uint8";
}

}  // namespace
}  // namespace millrace
