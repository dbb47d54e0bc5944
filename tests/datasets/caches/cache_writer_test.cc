#include "cache_rows.h"
#include "tests/reference.h"

#include <algorithm>
#include <map>
#include <thread>

#include <gtest/gtest.h>

namespace millrace {
namespace {

namespace fs = std::filesystem;

const Schema ragged{{.name = "tokens", .dtype = DType::int32, .shape = {-1}},
                    {.name = "image", .dtype = DType::uint8, .shape = {4, 4}},
                    text_field("caption")};
const Schema dense{{.name = "image", .dtype = DType::uint8, .shape = {4, 4}}};

struct Format {
  std::string name;
  int zstd = 0;
  const Schema& schema() const { return name.ends_with(".arrow") ? ragged : dense; }
  CacheOptions options() const { return {.zstd_level = zstd, .shard_rows = 10}; }
};
void PrintTo(const Format& format, std::ostream* out) {
  *out << format.name << (format.zstd > 0 ? " zstd" : "");
}

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// Everything a cache consists of, by the name that follows its own.
std::map<std::string, std::string> files_of(const fs::path& cache) {
  std::map<std::string, std::string> files;
  for (const char* suffix : {"", ".json", ".sources.jsonl"}) {
    if (fs::exists(cache.string() + suffix)) files[suffix] = bytes_of_file(cache.string() + suffix);
  }
  return files;
}

class EveryFormat : public testing::TestWithParam<Format> {
 protected:
  CachePlan plan(std::int64_t sources = 95) const {
    return {.schema = GetParam().schema(),
            .sources = sources,
            .fingerprint = "the list",
            .options = {{"transform", "none"}, {"size", "256"}}};
  }
  CacheWriter writer(const fs::path& path) const { return {path, plan(), GetParam().options()}; }
  TemporaryFolder folder_;
};

TEST_P(EveryFormat, GivesTheSameBytesInWhateverOrderAndByHoweverManyItIsMade) {
  fs::path straight = folder_ / GetParam().name;
  {
    CacheWriter cache = writer(straight);
    EXPECT_EQ(cache.shards(), 10);
    EXPECT_EQ(cache.range(9).size(), 5U);
    for (std::int64_t shard = 0; shard < 10; ++shard) {
      write_shard(cache, GetParam().schema(), shard, true);
    }
    EXPECT_EQ(cache.join().rows, 85);
  }
  fs::path other = folder_ / ("other-" + GetParam().name);
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      CacheWriter cache = writer(other);
      // Backwards, and shard 4 by all three at once.
      for (std::int64_t shard = 9; shard >= 0; --shard) {
        if (shard % 3 == t || shard == 4) write_shard(cache, GetParam().schema(), shard, true);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CacheWriter cache = writer(other);
  EXPECT_TRUE(cache.missing().empty());
  cache.join();
  EXPECT_EQ(files_of(straight), files_of(other));
  EXPECT_TRUE(verify_cache(other).problems.empty());
  EXPECT_FALSE(fs::exists(other.string() + ".parts"));
}

TEST_P(EveryFormat, GoesOnWhereItStopped) {
  fs::path path = folder_ / GetParam().name;
  {
    CacheWriter cache = writer(path);
    for (std::int64_t shard : {0, 3, 7}) write_shard(cache, GetParam().schema(), shard);
    ShardWriter begun = cache.begin(5);
    begun.append(50, source_of(50), row_of(GetParam().schema(), 50));
    EXPECT_NE(message_of([&] { cache.join(); }).find("7 of 10 shards are not finished"),
              std::string::npos);
  }
  {
    CacheWriter cache = writer(path);
    EXPECT_FALSE(cache.complete());
    EXPECT_EQ(cache.missing(), (std::vector<std::int64_t>{1, 2, 4, 5, 6, 8, 9}));
    for (std::int64_t shard : cache.missing()) write_shard(cache, GetParam().schema(), shard);
    cache.join();
  }
  CacheWriter again = writer(path);
  EXPECT_TRUE(again.complete());
  EXPECT_TRUE(again.missing().empty());
  EXPECT_EQ(again.join().rows, 95);
}

TEST_P(EveryFormat, RefusesAnotherPlanAndTellsWhatDiffers) {
  fs::path path = folder_ / GetParam().name;
  auto begin = [&](const std::string& size, std::int64_t sources) {
    CachePlan changed = plan(sources);
    changed.options["size"] = size;
    return CacheWriter(path, changed, GetParam().options());
  };
  begin("256", 95);
  std::string over_parts = message_of([&] { begin("128", 95); });
  EXPECT_NE(over_parts.find("option 'size': 256 before, 128 now"), std::string::npos) << over_parts;
  EXPECT_EQ(over_parts.find("transform"), std::string::npos);
  {
    CacheWriter cache = begin("256", 95);
    for (std::int64_t shard : cache.missing()) write_shard(cache, GetParam().schema(), shard);
    cache.join();
  }
  auto before = files_of(path);
  std::string over_cache = message_of([&] { begin("512", 96); });
  EXPECT_NE(over_cache.find("option 'size': 256 before, 512 now"), std::string::npos);
  EXPECT_NE(over_cache.find("number of sources: 95 before, 96 now"), std::string::npos);
  EXPECT_EQ(files_of(path), before);
  CacheOptions fresh = GetParam().options();
  fresh.fresh = true;
  CacheWriter anew(path, plan(96), fresh);
  EXPECT_FALSE(fs::exists(path));
  EXPECT_EQ(anew.missing().size(), 10U);
}

TEST_P(EveryFormat, MakesADamagedShardAgain) {
  fs::path path = folder_ / GetParam().name;
  CacheWriter cache = writer(path);
  for (std::int64_t shard : cache.missing()) write_shard(cache, GetParam().schema(), shard);
  fs::path shard = path.string() + ".parts/shard-000004";
  std::string bytes = bytes_of_file(shard);
  bytes[bytes.size() / 3] = static_cast<char>(bytes[bytes.size() / 3] ^ 1);
  std::ofstream(shard, std::ios::binary) << bytes;
  EXPECT_NE(message_of([&] { cache.join(); }).find("damaged"), std::string::npos);
  EXPECT_EQ(cache.missing(), std::vector<std::int64_t>{4});
  write_shard(cache, GetParam().schema(), 4);
  cache.join();
  EXPECT_TRUE(verify_cache(path).problems.empty());
}

TEST_P(EveryFormat, IsTheSameWhenItWasJoinedAhead) {
  fs::path straight = folder_ / GetParam().name, ahead = folder_ / ("ahead-" + GetParam().name);
  write_cache(straight, GetParam().schema(), 95, GetParam().options(), true);
  CachePlan same{.schema = GetParam().schema(),
                 .sources = 95,
                 .fingerprint = "the list",
                 .options = {{"transform", "none"}}};
  CacheWriter cache(ahead, same, GetParam().options());
  cache.join_ahead();
  for (std::int64_t shard : {3, 0, 1, 2, 9, 5, 4, 8, 6, 7}) {
    write_shard(cache, GetParam().schema(), shard, true);
    cache.join_ahead();
  }
  cache.join();
  cache.join_ahead();
  EXPECT_EQ(files_of(straight), files_of(ahead));
  EXPECT_FALSE(fs::exists(ahead.string() + ".parts"));
}

TEST_P(EveryFormat, FindsAShardDamagedThatItWouldJoinAhead) {
  fs::path path = folder_ / GetParam().name;
  CacheWriter cache = writer(path);
  for (std::int64_t shard : cache.missing()) write_shard(cache, GetParam().schema(), shard);
  fs::path shard = path.string() + ".parts/shard-000002";
  std::string bytes = bytes_of_file(shard);
  std::ofstream(shard, std::ios::binary) << bytes.substr(0, bytes.size() / 2);
  cache.join_ahead();
  EXPECT_EQ(cache.missing(), std::vector<std::int64_t>{2});
  write_shard(cache, GetParam().schema(), 2);
  EXPECT_EQ(cache.join().rows, 95);
  EXPECT_TRUE(verify_cache(path).problems.empty());
}

INSTANTIATE_TEST_SUITE_P(Formats, EveryFormat,
                         testing::Values(Format{"x.npy"}, Format{"x.bin"}, Format{"x.arrow"},
                                         Format{"x.arrow", 3}));

TEST(CacheWriter, LosesAndInventsNothing) {
  TemporaryFolder folder;
  CacheWriter cache(folder / "x.npy", {.schema = dense, .sources = 20}, {.shard_rows = 10});
  auto row = row_of(dense, 0);
  ShardWriter shard = cache.begin(1);
  EXPECT_NE(message_of([&] { shard.append(11, {}, row); }), "no error");
  shard.append(10, {}, row);
  EXPECT_NE(message_of([&] { shard.append(10, {}, row); }), "no error");
  EXPECT_NE(message_of([&] { shard.finish(); }).find("misses 9"), std::string::npos);
  for (std::int64_t i = 11; i < 20; ++i) shard.fail(i, {}, "no");
  EXPECT_NE(message_of([&] { shard.append(20, {}, row); }), "no error");
  shard.finish();
  EXPECT_TRUE(cache.done(1));
  EXPECT_FALSE(cache.done(0));
}

TEST(CacheWriter, TakesOnlyRowsOfItsSchema) {
  TemporaryFolder folder;
  CacheWriter cache(folder / "x.arrow", {.schema = ragged, .sources = 2});
  ShardWriter shard = cache.begin(0);
  auto row = row_of(ragged, 0);
  row[1] = Array::empty(DType::uint8, {4, 5});
  EXPECT_NE(message_of([&] {
              shard.append(0, {.name = "a"}, row);
            }).find("field 'image' is uint8 [4, 4], but the row has uint8 [4, 5]"),
            std::string::npos);
  row = row_of(ragged, 0);
  row[2].data()[0] = std::byte{0xff};
  EXPECT_NE(message_of([&] { shard.append(0, {}, row); }).find("not UTF-8"), std::string::npos);
  // A refused row has not been taken: the source can still become a failure.
  shard.fail(0, {.name = "a\xff\nb"}, "refused");
  shard.append(1, {.name = "c\xff"}, row_of(ragged, 1));
  shard.finish();
  EXPECT_EQ(cache.join().first_failures.size(), 1U);
}

TEST(CacheWriter, RefusesWhatAFormatCannotHold) {
  TemporaryFolder folder;
  EXPECT_NE(message_of([&] {
              CacheWriter(folder / "x.npy", {.schema = ragged, .sources = 1});
            }).find("one field of fixed shape"),
            std::string::npos);
  EXPECT_NE(message_of([&] {
              CacheWriter(folder / "x.npy", {.schema = dense, .sources = 1}, {.zstd_level = 3});
            }),
            "no error");
  EXPECT_NE(message_of([&] {
              CacheWriter(folder / "x.txt", {.schema = dense, .sources = 1});
            }).find("Let it end in"),
            std::string::npos);
  std::ofstream(folder / "mine.npy") << "not a cache";
  EXPECT_NE(message_of([&] { CacheWriter(folder / "mine.npy", {.schema = dense, .sources = 1}); }),
            "no error");
  EXPECT_EQ(bytes_of_file(folder / "mine.npy"), "not a cache");
  EXPECT_NE(
      message_of([&] { CacheWriter("/nowhere/at/all/x.npy", {.schema = dense, .sources = 1}); }),
      "no error");
}

TEST(CacheWriter, ToldBeforehandThatTheRoomIsTooSmall) {
  TemporaryFolder folder;
  Schema huge{{.name = "x", .dtype = DType::uint8, .shape = {1 << 30}}};
  std::string message =
      message_of([&] { CacheWriter(folder / "x.npy", {.schema = huge, .sources = 100'000}); });
  EXPECT_NE(message.find("not enough room: 214748364.8 MB"), std::string::npos) << message;
}

TEST(CacheWriter, EmptySourcesGiveAnEmptyCache) {
  TemporaryFolder folder;
  EXPECT_EQ(write_cache(folder / "x.npy", dense, 0).rows, 0);
  EXPECT_EQ(write_cache(folder / "x.arrow", ragged, 0).rows, 0);
  EXPECT_TRUE(verify_cache(folder / "x.arrow").problems.empty());
}

TEST(SmallestDtype, HoldsTheVocabularyAndNoMore) {
  EXPECT_EQ(smallest_dtype(1), DType::uint8);
  EXPECT_EQ(smallest_dtype(256), DType::uint8);
  EXPECT_EQ(smallest_dtype(257), DType::uint16);
  EXPECT_EQ(smallest_dtype(65536), DType::uint16);
  EXPECT_EQ(smallest_dtype(65537), DType::uint32);
  EXPECT_EQ(smallest_dtype(std::int64_t{1} << 33), DType::uint64);
  EXPECT_EQ(smallest_dtype(128, true), DType::int8);
  EXPECT_EQ(smallest_dtype(129, true), DType::int16);
  EXPECT_EQ(smallest_dtype(50257, true), DType::int32);
  EXPECT_THROW(smallest_dtype(0), Error);
}

TEST(SourceFingerprint, TellsListsApart) {
  auto of = [](std::vector<CacheSource> sources) {
    SourceFingerprint fingerprint;
    for (const CacheSource& source : sources) fingerprint.add(source);
    return fingerprint.value();
  };
  EXPECT_EQ(of({{"a", 1, 2}, {"b", 1, 2}}), of({{"a", 1, 2}, {"b", 1, 2}}));
  EXPECT_NE(of({{"a", 1, 2}, {"b", 1, 2}}), of({{"b", 1, 2}, {"a", 1, 2}}));
  EXPECT_NE(of({{"a", 1, 2}}), of({{"a", 1, 3}}));
  EXPECT_NE(of({{"a", 1, 2}}), of({{"a", 2, 2}}));
}

}  // namespace
}  // namespace millrace
