// The house rules that a machine can check: which room includes which, which library is seen where,
// how long things are, and that every room has a door plate.
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace {

namespace fs = std::filesystem;

const fs::path root = MILLRACE_SOURCE_DIR;
// Includes go one way: a room sees itself and what stands before it.
const std::vector<std::string> rooms = {"pipeline", "decoders", "datasets", "training", "tools"};

struct Include {
  fs::path file;
  std::string target;
};

std::vector<fs::path> sources_of(const std::string& room) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(root / room)) {
    std::string extension = entry.path().extension().string();
    if (extension == ".h" || extension == ".cc" || extension == ".cu")
      files.push_back(entry.path());
  }
  return files;
}

std::vector<Include> includes_of(const fs::path& file) {
  std::vector<Include> found;
  std::ifstream in(file);
  static const std::regex pattern(R"(^\s*#\s*include\s*[<"]([^>"]+)[>"])");
  std::smatch match;
  for (std::string line; std::getline(in, line);) {
    if (std::regex_search(line, match, pattern)) found.push_back({file, match[1]});
  }
  return found;
}

int lines_of(const fs::path& file) {
  std::ifstream in(file);
  int lines = 0;
  for (std::string line; std::getline(in, line);) ++lines;
  return lines;
}

TEST(House, IncludesGoOneWay) {
  int seen = 0;
  for (std::size_t room = 0; room < rooms.size(); ++room) {
    for (const fs::path& file : sources_of(rooms[room])) {
      for (const Include& include : includes_of(file)) {
        for (std::size_t other = room + 1; other < rooms.size(); ++other) {
          EXPECT_NE(include.target.find("millrace/" + rooms[other] + "/"), 0U)
              << file << " includes <" << include.target << ">: " << rooms[room] << " must not see "
              << rooms[other];
        }
        ++seen;
      }
    }
  }
  EXPECT_GT(seen, 100);
}

// Which files may include a library's headers. A public header shows none of them.
TEST(House, LibrariesAreSeenOnlyWhereTheyBelong) {
  struct Rule {
    std::regex header;
    std::regex allowed;
  };
  const std::vector<Rule> rules = {
      {std::regex("^taskflow/"), std::regex("^pipeline/(.*\\.cc|slot\\.h)$")},
      {std::regex("^cuda"), std::regex("^(pipeline/cuda|training)/.*")},
      {std::regex("^spdlog/"), std::regex("^pipeline/.*\\.cc$")},
      {std::regex("^(torch|ATen|c10|caffe2)/"),
       std::regex("^(training|tools/train/run|tools/preprocess/tokens)/|^tools/generate/"
                  "generate_[a-z]+\\.(h|cc)$")},
      {std::regex("^arrow/"), std::regex("^datasets/.*\\.cc$")},
      {std::regex("^(libav|libsw|jpeglib|png\\.h|webp/)"), std::regex("^decoders/.*")},
      {std::regex("^CLI/"), std::regex("^tools/cli/(options|toml)\\.cc$")},
      {std::regex("^assimp/"), std::regex("^$")},
  };
  for (const std::string& room : rooms) {
    for (const fs::path& file : sources_of(room)) {
      std::string name = fs::relative(file, root).generic_string();
      for (const Include& include : includes_of(file)) {
        for (const Rule& rule : rules) {
          if (!std::regex_search(include.target, rule.header)) continue;
          EXPECT_TRUE(std::regex_search(name, rule.allowed))
              << name << " must not include <" << include.target << ">";
        }
      }
    }
  }
}

TEST(House, FilesAndPublicHeadersAreShort) {
  for (const std::string& room : rooms) {
    for (const fs::path& file : sources_of(room)) {
      EXPECT_LE(lines_of(file), file.extension() == ".h" ? 200 : 500) << file;
      EXPECT_EQ(std::ifstream(file).peek() == '/' || file.extension() != ".h", true)
          << file << ": a header starts with what it is for";
    }
  }
}

TEST(House, EveryRoomHasAReadmeAndNothingElseStandsAtTheTop) {
  for (const char* room : {"pipeline", "decoders", "datasets", "training", "tools", "tests"}) {
    EXPECT_TRUE(fs::exists(root / room / "README.md")) << room;
  }
  const std::set<std::string> allowed = {
      "pipeline", "decoders",       "datasets",          "training",  "tools",   "tests",
      "build",    "CMakeLists.txt", "CMakePresets.json", "README.md", "LICENSE", "quickstart-out"};
  for (const auto& entry : fs::directory_iterator(root)) {
    std::string name = entry.path().filename().string();
    EXPECT_TRUE(name.starts_with(".") || allowed.contains(name)) << name;
  }
}

}  // namespace
