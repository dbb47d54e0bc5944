// Runs Python and other programs for reference results, in folders that go away with the test.
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <sstream>
#include <string>
#include <vector>

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

// What a command prints. One that fails is a failure of the test, with its message.
inline std::string run_command(const std::string& command) {
  TemporaryFolder folder;
  const std::string errors = (folder / "stderr").string();
  // The sanitizers' runtimes are for our programs, not for others.
  std::FILE* pipe = popen(("env -u LD_PRELOAD " + command + " 2>" + errors).c_str(), "r");
  std::string output;
  char chunk[65536];
  while (std::size_t n = fread(chunk, 1, sizeof chunk, pipe)) output.append(chunk, n);
  if (pclose(pipe) != 0) {
    std::ostringstream said;
    said << std::ifstream(errors).rdbuf();
    ADD_FAILURE() << command << " failed: " << said.str();
  }
  return output;
}

// What a script, e.g. "tests/decoders/image/make_images.py", prints.
inline std::string run_script(const std::string& path, const std::string& arguments,
                              const std::string& interpreter = MILLRACE_PYTHON) {
  const auto script = std::filesystem::path(MILLRACE_SOURCE_DIR) / path;
  return run_command(interpreter + " -W ignore " + script.string() + " " + arguments);
}

// What a script that stands in the test itself prints.
inline std::string run_python(const std::string& script, const std::string& arguments = "",
                              const std::string& interpreter = MILLRACE_PYTHON) {
  TemporaryFolder folder;
  std::ofstream(folder / "script.py") << script;
  return run_script((folder / "script.py").string(), arguments, interpreter);
}

inline std::vector<std::byte> read_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> text{std::istreambuf_iterator<char>(file), {}};
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

inline void write_bytes(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

}  // namespace millrace
