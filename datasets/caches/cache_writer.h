// Writes a cache so that a crash loses only the unfinished shards. The sources 0..n-1 are divided
// into shards. A finished shard has a checksum and is on disk under its final name in the folder
// `<out>.parts`; join() makes one dense file from all shards. Several processes may write different
// shards of one cache at the same time. The same plan always gives the same bytes.
//
//   Schema schema{{.name = "image", .dtype = DType::uint8, .shape = {256, 256, 3}}};
//   CacheWriter writer("photos.npy", {.schema = schema, .sources = 1000,
//                                     .options = {{"transform", "centre crop 256"}}});
//   Array image = Array::empty(DType::uint8, {256, 256, 3});
//   for (std::int64_t shard : writer.missing()) {
//     ShardWriter rows = writer.begin(shard);
//     for (std::int64_t i : writer.range(shard)) rows.append(i, {.name = "a"}, std::span(&image,
//     1)); rows.finish();
//   }
//   CacheInfo info = writer.join();
#pragma once

#include <millrace/datasets/caches/cache_info.h>
#include <millrace/pipeline/data/array.h>
#include <millrace/pipeline/data/sample.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace millrace {

// The smallest integer type for the tokens 0..vocabulary-1, and for -1 if `with_negative`.
DType smallest_dtype(std::int64_t vocabulary, bool with_negative = false);

// A hash of a list of sources. A run is resumed only if its list of sources is the same.
class SourceFingerprint {
 public:
  SourceFingerprint();
  ~SourceFingerprint();
  void add(const CacheSource& source);
  std::string value() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// What the cache contains. A cache or a folder of shards that was made with another plan is
// refused.
struct CachePlan {
  Schema schema{};
  std::int64_t sources = 0;
  std::string fingerprint{};                     // see SourceFingerprint
  std::map<std::string, std::string> options{};  // every option that the content depends on
};

struct CacheOptions {
  std::optional<CacheFormat> format{};  // default: by the extension
  int zstd_level = 0;                   // Arrow only; 0: uncompressed, read without a copy
  std::int64_t shard_rows = 0;          // sources per shard; 0: about 16 MB of rows
  std::vector<std::string> binary{};    // uint8 [-1] fields that hold encoded media (Arrow: binary)
  bool fresh = false;                   // removes an existing cache that Millrace wrote
};

class CacheWriter;

// One shard while it is written. Every source of its range must be added once, in rising order, as
// a row or as a failure.
class ShardWriter {
 public:
  ~ShardWriter();  // without finish() nothing is kept
  ShardWriter(ShardWriter&&) noexcept;

  void append(std::int64_t index, const CacheSource& source, const Sample& row);
  // One array per field, in the order of the schema; e.g. rows of a batch.
  void append(std::int64_t index, const CacheSource& source, std::span<const Array> row);
  void fail(std::int64_t index, const CacheSource& source, const std::string& reason);
  // When this returns, the shard is on disk under its final name.
  void finish();
  std::uint64_t bytes() const;  // written so far

 private:
  friend class CacheWriter;
  struct State;
  explicit ShardWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// The sources of a shard, for range-based for.
class SourceRange {
 public:
  class Iterator {
   public:
    explicit Iterator(std::int64_t source) : source_(source) {}
    std::int64_t operator*() const { return source_; }
    Iterator& operator++() {
      ++source_;
      return *this;
    }
    bool operator==(const Iterator&) const = default;

   private:
    std::int64_t source_;
  };
  SourceRange(std::int64_t first, std::int64_t last) : first_(first), last_(last) {}
  Iterator begin() const { return Iterator(first_); }
  Iterator end() const { return Iterator(last_); }
  std::int64_t front() const { return first_; }
  std::size_t size() const { return static_cast<std::size_t>(last_ - first_); }

 private:
  std::int64_t first_, last_;
};

class CacheWriter {
 public:
  // Throws if the schema does not fit the format, if the disk is too full for rows of fixed size,
  // or if a cache or a folder of shards with another plan exists; the error lists the differences.
  CacheWriter(std::filesystem::path out, CachePlan plan, CacheOptions options = {});
  ~CacheWriter();
  CacheWriter(CacheWriter&&) noexcept;

  const std::filesystem::path& path() const;
  // True if the finished cache of this plan exists.
  bool complete() const;
  std::int64_t shards() const;
  SourceRange range(std::int64_t shard) const { return {first(shard), first(shard + 1)}; }
  // True if the shard is on disk, whichever process wrote it.
  bool done(std::int64_t shard) const;
  std::vector<std::int64_t> missing() const;
  // Thread-safe. Two processes may write the same shard: both give the same bytes.
  ShardWriter begin(std::int64_t shard);
  // Copies finished shards into the file that join() completes, so that join() takes less time. For
  // one process that writes all shards; call it from one thread, e.g. after every shard. It never
  // fails.
  void join_ahead();
  // Makes one file from all shards, verifies it and removes the folder. Waits while another process
  // joins. Throws if shards are missing or damaged; a damaged shard is removed, so that the next
  // run writes it again.
  CacheInfo join();

 private:
  friend class ShardWriter;
  std::int64_t first(std::int64_t shard) const;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace millrace
