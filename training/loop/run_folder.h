// The folder of a run: what may be written there, which checkpoints it has, and which of them can
// be resumed from. A folder with an earlier run is refused unless told otherwise; nobody is asked.
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

// What becomes of a run that the folder holds. `join`: this is another rank of the same run, and
// rank 0 has looked after that.
enum class OldRun : std::uint8_t { refuse, resume, clear, join };

class RunFolder {
 public:
  // Makes the folder, and another for the checkpoints if one is given. Throws an Error of kind
  // usage if one holds something and `old` is refuse, or if it is to be cleared and is not the
  // folder of a run. `stem`: what the names of checkpoints begin with.
  RunFolder(std::filesystem::path folder, OldRun old, std::filesystem::path checkpoints = {},
            std::string stem = "checkpoint");

  const std::filesystem::path& path() const { return folder_; }
  const std::filesystem::path& checkpoints_path() const { return checkpoints_; }
  std::filesystem::path operator/(const std::string& name) const { return folder_ / name; }

  // The newest checkpoint that is whole, with its step. A damaged one costs a warning.
  std::optional<std::pair<std::filesystem::path, Value>> newest() const;
  // <stem>.<number>.pt; afterwards all but the newest `keep` are removed (0: none).
  void save(std::int64_t number, const Value& state, int keep) const;
  // Marks the folders as those of a run: the whole configuration, as text.
  void write_config(const std::string& name, const std::string& text) const;

 private:
  std::vector<std::pair<std::int64_t, std::filesystem::path>> checkpoints() const;  // newest first

  std::filesystem::path folder_, checkpoints_;
  std::string stem_;
};

}  // namespace millrace
