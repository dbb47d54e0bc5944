// The list of samples that failed: source, stage and reason of each, recorded once. It is kept in
// memory and, if a path is given, in a JSON Lines file that survives a kill at any moment. A
// resumed run reads the file and does not try those samples again.
//
//   Ledger ledger("errors.jsonl");
//   ledger.add({.source = "clips/a.mp4", .stage = "video", .reason = "cannot decode", .index = 7});
//   bool bad = ledger.knows(7);
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <shared_mutex>
#include <string>
#include <unordered_set>
#include <vector>

namespace millrace {

struct BadSample {
  std::string source;  // its path, or the result of Dataset::describe()
  std::string stage;
  std::string reason;
  std::int64_t index = 0;  // -1: not a sample, but a file that the data set left out
  std::int64_t epoch = 0;
  std::int64_t position = 0;  // in the epoch's order
  bool transient = false;     // it is tried again in the next epoch
};

class Ledger {
 public:
  // With `resume`, reads the file and those of the other ranks. Without, renames an older file to
  // <name>.previous and starts a new one.
  explicit Ledger(std::filesystem::path path = {}, bool resume = false);
  ~Ledger();
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  // Returns false if the sample is recorded already. Writes to the file before it returns.
  bool add(BadSample sample);
  // True for a sample that failed and is not transient. Thread-safe.
  bool knows(std::int64_t index) const;
  std::optional<BadSample> find(std::int64_t index) const;
  std::int64_t size() const { return count_.load(std::memory_order_acquire); }
  // The number of records that are samples.
  std::int64_t bad_samples() const { return bad_samples_.load(std::memory_order_acquire); }
  std::vector<BadSample> records() const;
  const std::filesystem::path& path() const { return path_; }

 private:
  void read(const std::filesystem::path& file, bool own);
  bool remember(BadSample sample);

  std::filesystem::path path_;
  int file_ = -1;
  mutable std::shared_mutex mutex_;
  std::vector<BadSample> records_;
  std::unordered_set<std::string> sources_;
  std::unordered_set<std::int64_t> indices_;
  std::atomic<std::int64_t> count_{0}, bad_samples_{0};
};

}  // namespace millrace
