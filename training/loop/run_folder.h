// The results folder of a run: creates it, writes checkpoints into it and finds the newest readable
// one. A folder that holds an earlier run is refused by default. There is no interactive question.
#pragma once

#include <millrace/training/checkpoint/value.h>
#include <millrace/training/loop/checkpoint_numbers.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace millrace {

// What to do with an earlier run in the folder. Rank 0 refuses, resumes or clears it; the other
// ranks pass `join`, which checks nothing.
enum class OldRun : std::uint8_t { refuse, resume, clear, join };

class RunFolder {
 public:
  // Creates the folder, and a separate one for the checkpoints if given. Throws an Error of kind
  // usage if a folder is not empty and `old` is refuse, or if `old` is resume or clear and a run
  // has not written the folder. `stem`: the first part of a checkpoint's file name.
  RunFolder(std::filesystem::path folder, OldRun old, std::filesystem::path checkpoints = {},
            std::string stem = "checkpoint");

  const std::filesystem::path& path() const { return folder_; }
  const std::filesystem::path& checkpoints_path() const { return checkpoints_; }
  std::filesystem::path operator/(const std::string& name) const { return folder_ / name; }

  // The path and content of the newest checkpoint that can be read. Logs a warning for each damaged
  // one; throws if all are damaged.
  std::optional<std::pair<std::filesystem::path, Value>> newest() const;
  // Writes <stem>.<number>.pt, then deletes all but the newest `keep` checkpoints (0 keeps all).
  void save(std::int64_t number, const Value& state, int keep) const;
  // Writes the configuration and marks both folders as written by a run.
  void write_config(const std::string& name, const std::string& text) const;

 private:
  std::vector<std::pair<std::int64_t, std::filesystem::path>> checkpoints() const;  // newest first

  std::filesystem::path folder_, checkpoints_;
  std::string stem_;
};

}  // namespace millrace
