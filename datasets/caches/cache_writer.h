// Writes a cache so that a crash at any moment loses only the shards in work. The sources 0..n-1
// are cut into shards; each finished shard is checksummed and on the disk under its final name in
// the folder `<out>.parts`, and join() makes one dense file of them. Several processes may write
// different shards of one cache at once. The same plan gives the same bytes, always.
//
//   CacheWriter writer("photos.npy", {.schema = images.schema(), .sources = images.size(),
//                                     .options = {{"transform", "centre crop 256"}}});
//   for (std::int64_t shard : writer.missing()) {
//     ShardWriter rows = writer.begin(shard);
//     for (std::int64_t i : writer.range(shard)) rows.append(i, {.name = path(i)}, sample(i));
//     rows.finish();
//   }
//   CacheInfo made = writer.join();
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

// The smallest integer type that holds the tokens 0..vocabulary-1, and -1 if `with_negative`.
DType smallest_dtype(std::int64_t vocabulary, bool with_negative = false);

// Sums up a list of sources, so that a run goes on only over the list it began with.
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

// What is made of what. A run with another plan over an old folder or cache is refused.
struct CachePlan {
  Schema schema{};
  std::int64_t sources = 0;
  std::string fingerprint{};                     // see SourceFingerprint
  std::map<std::string, std::string> options{};  // all that decides the content
};

struct CacheOptions {
  std::optional<CacheFormat> format{};  // by the name's ending if not given
  int zstd_level = 0;                   // Arrow only; 0: uncompressed, and mapped without a copy
  std::int64_t shard_rows = 0;          // sources per shard; 0: about 16 MB of rows
  std::vector<std::string> binary{};    // uint8 [-1] fields that hold encoded media (Arrow: binary)
  bool fresh = false;                   // removes what is there, if Millrace wrote it
};

class CacheWriter;

// One shard in work. Indices come in rising order, each of the range once: as a row or a failure.
class ShardWriter {
 public:
  ~ShardWriter();  // without finish(), the shard is left undone
  ShardWriter(ShardWriter&&) noexcept;

  void append(std::int64_t index, const CacheSource& source, const Sample& row);
  // By field, in the order of the schema; e.g. rows of a batch.
  void append(std::int64_t index, const CacheSource& source, std::span<const Array> row);
  void fail(std::int64_t index, const CacheSource& source, const std::string& reason);
  // On the disk and under its name when this returns.
  void finish();
  std::uint64_t bytes() const;  // written so far

 private:
  friend class CacheWriter;
  struct State;
  explicit ShardWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// The sources of a shard, to go through with for.
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
  // Throws if the schema does not fit the format, if there is not enough room for rows of fixed
  // size, or if there is a cache or a folder of another plan: then it lists what differs.
  CacheWriter(std::filesystem::path out, CachePlan plan, CacheOptions options = {});
  ~CacheWriter();
  CacheWriter(CacheWriter&&) noexcept;

  const std::filesystem::path& path() const;
  // The finished cache of this plan is there; nothing is left to do.
  bool complete() const;
  std::int64_t shards() const;
  SourceRange range(std::int64_t shard) const { return {first(shard), first(shard + 1)}; }
  // Asks the disk, so that what other processes finished counts.
  bool done(std::int64_t shard) const;
  std::vector<std::int64_t> missing() const;
  // May be called from several threads, and for a shard that another process is writing, too.
  ShardWriter begin(std::int64_t shard);
  // Copies what is finished into the file that join() will complete, so that the end comes sooner.
  // For one process that makes all shards; from one thread, e.g. after every shard. It never fails.
  void join_ahead();
  // One file of all shards, verified; then the folder is removed. Waits if another process joins.
  // Throws if shards are missing, or one is damaged (which is then removed, to be made again).
  CacheInfo join();

 private:
  friend class ShardWriter;
  std::int64_t first(std::int64_t shard) const;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace millrace
