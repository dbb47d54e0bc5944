// Every sample that failed, once: which, at what stage, why. Kept in memory and, if a path is
// given, in a file of one JSON object per line that survives a kill at any moment. A resumed run
// reads it, so that what is known to be bad is neither tried nor recorded again.
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
  std::string source;  // its path, or what Dataset::describe says
  std::string stage;
  std::string reason;
  std::int64_t index = 0;  // -1: no sample, but something that the data set left out
  std::int64_t epoch = 0;
  std::int64_t position = 0;  // in the epoch's order
  bool transient = false;     // another epoch may succeed: tried again
};

class Ledger {
 public:
  // With `resume`, what the file (and its siblings of other ranks) says is known from the start.
  // Without, an older file is moved to <name>.previous and a new one begun.
  explicit Ledger(std::filesystem::path path = {}, bool resume = false);
  ~Ledger();
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  // False if it is known already. Written to the file before this returns.
  bool add(BadSample sample);
  // For one sample that is known to be bad in every epoch. Called from the loader's tasks.
  bool knows(std::int64_t index) const;
  std::optional<BadSample> find(std::int64_t index) const;
  std::int64_t size() const { return count_.load(std::memory_order_acquire); }
  // How many of the records are samples.
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
