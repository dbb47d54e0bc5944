// Runs Python for a reference result. The script is given on standard input, so that a test shows
// what it compares with.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

namespace millrace {

// A folder of its own for one test, removed with it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "millrace.XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// What the script prints. A script that fails is a failure of the test, with its message.
inline std::string run_python(const std::string& script, const std::string& arguments = "") {
  TemporaryFolder folder;
  std::ofstream(folder / "script.py") << script;
  // The sanitizers' runtimes are for our programs, not for Python.
  std::string command = "env -u LD_PRELOAD " MILLRACE_PYTHON " " + (folder / "script.py").string() +
                        " " + arguments + " 2>" + (folder / "stderr").string();
  std::FILE* pipe = popen(command.c_str(), "r");
  std::string output;
  char chunk[65536];
  while (std::size_t n = fread(chunk, 1, sizeof chunk, pipe)) output.append(chunk, n);
  if (pclose(pipe) != 0) {
    std::ostringstream errors;
    errors << std::ifstream(folder / "stderr").rdbuf();
    ADD_FAILURE() << "the reference script failed: " << errors.str();
  }
  return output;
}

}  // namespace millrace
