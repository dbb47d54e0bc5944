// The tree of sources as the tests of the house rules see it.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace house {

namespace fs = std::filesystem;

inline const fs::path root = MILLRACE_SOURCE_DIR;
// Includes go one way: a room sees itself and the rooms before it.
inline const std::vector<std::string> rooms = {"pipeline", "decoders", "datasets", "training",
                                               "tools"};

inline std::string name_of(const fs::path& file) {
  return fs::relative(file, root).generic_string();
}

inline std::vector<std::string> lines_of(const fs::path& file) {
  std::ifstream in(file);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// The folders of a room and the room itself, without data that is not read by people.
inline std::vector<fs::path> folders_of(const std::string& room) {
  std::vector<fs::path> folders = {root / room};
  for (fs::recursive_directory_iterator at(root / room), end; at != end; ++at) {
    if (!at->is_directory()) continue;
    std::string name = at->path().filename().string();
    if (name == "fixtures" || name == "regressions" || name == "__pycache__") {
      at.disable_recursion_pending();
    } else {
      folders.push_back(at->path());
    }
  }
  return folders;
}

inline std::vector<fs::path> sources_of(const std::string& room) {
  std::vector<fs::path> files;
  for (const fs::path& folder : folders_of(room)) {
    for (const auto& entry : fs::directory_iterator(folder)) {
      fs::path extension = entry.path().extension();
      if (extension == ".h" || extension == ".cc" || extension == ".cu")
        files.push_back(entry.path());
    }
  }
  return files;
}

}  // namespace house
