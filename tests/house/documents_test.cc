// What READMEs and guides promise: links that lead somewhere, and a line for every folder.
#include "tests/house/tree.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace {

namespace fs = std::filesystem;
using house::lines_of;
using house::name_of;
using house::root;

std::vector<fs::path> documents() {
  std::vector<fs::path> found;
  auto add = [&](const fs::path& folder) {
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.path().extension() == ".md") found.push_back(entry.path());
    }
  };
  add(root);
  for (const auto& entry : fs::recursive_directory_iterator(root / ".github")) {
    if (entry.path().extension() == ".md") found.push_back(entry.path());
  }
  for (const char* room : {"pipeline", "decoders", "datasets", "training", "tools", "tests"}) {
    for (const fs::path& folder : house::folders_of(room)) add(folder);
  }
  return found;
}

// Lines of a document with what is code left empty, so that line numbers stay.
std::vector<std::string> prose_of(const fs::path& file) {
  std::vector<std::string> lines = lines_of(file);
  bool code = false;
  for (std::string& line : lines) {
    bool fence = line.starts_with("```");
    if (code || fence || line.starts_with("    ")) line.clear();
    if (fence) code = !code;
  }
  return lines;
}

// The anchors that GitHub gives headings: lower case, without punctuation, spaces as hyphens.
std::set<std::string> anchors_of(const fs::path& file) {
  std::set<std::string> anchors;
  for (const std::string& line : prose_of(file)) {
    if (!line.starts_with("#")) continue;
    std::string anchor;
    for (char c : line.substr(std::min(line.find_first_not_of("# "), line.size()))) {
      auto byte = static_cast<unsigned char>(c);
      if (std::isalnum(byte) || c == '-' || c == '_' || byte >= 0x80)
        anchor += static_cast<char>(std::tolower(byte));
      if (c == ' ') anchor += '-';
    }
    anchors.insert(anchor);
  }
  return anchors;
}

TEST(Documents, LinksLeadSomewhere) {
  static const std::regex link(R"(\]\(([^)\s]+)\))");
  int checked = 0;
  for (const fs::path& file : documents()) {
    std::vector<std::string> lines = prose_of(file);
    for (std::size_t number = 0; number < lines.size(); ++number) {
      const std::string& line = lines[number];
      for (std::sregex_iterator at(line.begin(), line.end(), link), end; at != end; ++at) {
        std::string target = (*at)[1];
        if (target.find("://") != std::string::npos || target.starts_with("mailto:")) continue;
        std::size_t hash = target.find('#');
        std::string path = target.substr(0, hash);
        fs::path to = path.empty() ? file : file.parent_path() / path;
        EXPECT_TRUE(fs::exists(to)) << name_of(file) << ":" << number + 1 << ": no " << target;
        if (hash != std::string::npos && to.extension() == ".md" && fs::exists(to)) {
          EXPECT_TRUE(anchors_of(to).contains(target.substr(hash + 1)))
              << name_of(file) << ":" << number + 1 << ": no heading for " << target;
        }
        ++checked;
      }
    }
  }
  EXPECT_GT(checked, 20);
}

// Tests of room/folder/ are in tests/room/folder/: that needs no line.
bool mirrors_a_room(const fs::path& folder) {
  std::string name = name_of(folder);
  return name.starts_with("tests/") && fs::exists(root / name.substr(6));
}

// The README of the room, or one in a folder between, has a line with `folder/`.
TEST(Documents, EveryFolderHasALineInAReadme) {
  for (const char* room : {"pipeline", "decoders", "datasets", "training", "tools", "tests"}) {
    for (const fs::path& folder : house::folders_of(room)) {
      if (folder == root / room || mirrors_a_room(folder)) continue;
      bool named = false;
      for (fs::path above = folder; above != root && !named;) {
        above = above.parent_path();
        fs::path readme = above / "README.md";
        if (above == root || !fs::exists(readme)) continue;
        std::string wanted = "`" + fs::relative(folder, above).generic_string() + "/`";
        std::vector<std::string> lines = lines_of(readme);
        named = std::ranges::any_of(
            lines, [&](const std::string& line) { return line.find(wanted) != std::string::npos; });
      }
      EXPECT_TRUE(named) << name_of(folder) << " has no line in a README above it";
    }
  }
}

}  // namespace
