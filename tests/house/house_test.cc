// The house rules that a machine can check: which room includes which, which library is seen where,
// how long files and functions are, how many files a folder has. Rules for READMEs are in
// documents_test.cc.
#include "tests/house/tree.h"

#include <fstream>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace {

namespace fs = std::filesystem;
using house::name_of;
using house::rooms;
using house::root;
using house::sources_of;

constexpr int max_header_lines = 150;
constexpr int max_source_lines = 400;
constexpr int max_function_lines = 60;
constexpr int max_files_per_folder = 25;

// Longer than the limit when it was set. Split them when they change, and take them off this list.
const std::set<std::string> long_test_files = {
    "tests/datasets/folders/mesh_data_test.cc",
    "tests/pipeline/loader/simulated_device.h",
    "tests/training/programs/trainer_programs.h",
};

struct Include {
  fs::path file;
  std::string target;
};

std::vector<Include> includes_of(const fs::path& file) {
  std::vector<Include> found;
  static const std::regex pattern(R"(^\s*#\s*include\s*[<"]([^>"]+)[>"])");
  std::smatch match;
  for (const std::string& line : house::lines_of(file)) {
    if (std::regex_search(line, match, pattern)) found.push_back({file, match[1]});
  }
  return found;
}

struct Function {
  std::size_t line = 0;  // from 1
  std::size_t length = 0;
  std::string begins;
};

// Functions that are too long. It relies on clang-format: a block ends with a line of its own, `}`,
// indented as the line that it began with.
std::vector<Function> long_functions(const std::vector<std::string>& lines) {
  static const std::regex other(R"(^\s*(//|#|public:|private:|protected:|$))");
  std::vector<Function> found;
  for (std::size_t end = 0; end < lines.size(); ++end) {
    std::size_t indent = lines[end].find_first_not_of(' ');
    if (indent == std::string::npos || lines[end].substr(indent) != "}") continue;
    std::size_t begin = end;
    while (begin > 0) {
      const std::string& line = lines[--begin];
      if (line.find_first_not_of(' ') <= indent && !std::regex_search(line, other)) break;
    }
    std::size_t length = end - begin + 1;
    if (length <= max_function_lines) continue;
    // What it holds came before it.
    std::erase_if(found, [&](const Function& inner) { return inner.line > begin + 1; });
    found.push_back({begin + 1, length, lines[begin]});
  }
  return found;
}

TEST(House, IncludesGoOneWay) {
  int seen = 0;
  for (std::size_t room = 0; room < rooms.size(); ++room) {
    for (const fs::path& file : sources_of(rooms[room])) {
      for (const Include& include : includes_of(file)) {
        for (std::size_t other = room + 1; other < rooms.size(); ++other) {
          bool seen_other = include.target.starts_with("millrace/" + rooms[other] + "/") ||
                            include.target == "millrace/" + rooms[other] + ".h" ||
                            include.target.starts_with(rooms[other] + "/");
          EXPECT_FALSE(seen_other) << file << " includes <" << include.target
                                   << ">: " << rooms[room] << " must not see " << rooms[other];
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
      {std::regex("^taskflow/"), std::regex("^pipeline/.*(\\.cc|/slot[a-z_]*\\.h)$")},
      {std::regex("^cuda"), std::regex("^(pipeline/device|training)/.*")},
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
      std::string name = name_of(file);
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

TEST(House, FilesAreShort) {
  std::vector<std::string> folders = rooms;
  folders.emplace_back("tests");
  for (const std::string& folder : folders) {
    for (const fs::path& file : sources_of(folder)) {
      if (long_test_files.contains(name_of(file))) continue;
      std::size_t limit = file.extension() == ".h" ? max_header_lines : max_source_lines;
      EXPECT_LE(house::lines_of(file).size(), limit) << name_of(file);
    }
  }
}

TEST(House, HeadersStartWithWhatTheyAreFor) {
  for (const std::string& room : rooms) {
    for (const fs::path& file : sources_of(room)) {
      if (file.extension() != ".h") continue;
      EXPECT_EQ(std::ifstream(file).peek(), '/') << name_of(file);
    }
  }
}

TEST(House, FunctionsFitAScreen) {
  std::vector<std::string> folders = rooms;
  folders.emplace_back("tests");
  for (const std::string& folder : folders) {
    for (const fs::path& file : sources_of(folder)) {
      for (const Function& function : long_functions(house::lines_of(file))) {
        ADD_FAILURE() << name_of(file) << ":" << function.line << ": " << function.length
                      << " lines, more than " << max_function_lines << ": " << function.begins;
      }
    }
  }
}

TEST(House, LongFunctionsAreSeen) {
  std::vector<std::string> lines = {"int f(int a,", "      int b) {", "  if (a) {"};
  lines.insert(lines.end(), max_function_lines, "    ++b;");
  lines.insert(lines.end(), {"  }", "  return b;", "}", "", "void g() {", "}"});
  std::vector<Function> found = long_functions(lines);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].line, 1U);
  EXPECT_EQ(found[0].length, max_function_lines + 6U);
}

TEST(House, FoldersAreSmall) {
  std::vector<std::string> folders = rooms;
  folders.emplace_back("tests");
  for (const std::string& room : folders) {
    for (const fs::path& folder : house::folders_of(room)) {
      int files = 0;
      for (const auto& entry : fs::directory_iterator(folder)) files += entry.is_regular_file();
      EXPECT_LE(files, max_files_per_folder) << name_of(folder);
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
