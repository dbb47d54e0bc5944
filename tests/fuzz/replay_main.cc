// Runs a fuzz target over files without libFuzzer: fuzz_obj [--damage N] FILE_OR_FOLDER...
// With --damage it also runs N damaged copies of them: cut short, or with bits turned over. The
// damage is the same in every run.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<std::uint8_t>;

std::vector<fs::path> list_files(const fs::path& path) {
  std::vector<fs::path> files;
  if (fs::is_directory(path)) {
    for (const auto& entry : fs::recursive_directory_iterator(path)) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
  } else if (fs::exists(path)) {
    files.push_back(path);
  }
  std::sort(files.begin(), files.end());
  return files;
}

void run(const Bytes& bytes) {
  // An exact copy on the heap, so that a sanitizer sees each read beyond its end.
  Bytes exact(bytes);
  exact.shrink_to_fit();
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

std::uint64_t next_random(std::uint64_t& state) {
  state += 0x9E3779B97F4A7C15U;
  std::uint64_t x = state;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

Bytes damage(Bytes bytes, std::uint64_t& random) {
  if (bytes.empty()) return bytes;
  if (next_random(random) % 2 == 0) {
    bytes.resize(next_random(random) % bytes.size());
    return bytes;
  }
  for (std::uint64_t flips = 1 + next_random(random) % 8; flips > 0; --flips) {
    // Half of them near the start, where headers are.
    std::uint64_t reach =
        next_random(random) % 2 == 0 ? std::min<std::size_t>(bytes.size(), 128) : bytes.size();
    bytes[next_random(random) % reach] ^= static_cast<std::uint8_t>(1U << next_random(random) % 8);
  }
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  long mutations = 0;
  std::vector<Bytes> inputs;
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--damage" && i + 1 < argc) {
      mutations = std::strtol(argv[++i], nullptr, 10);
      continue;
    }
    for (const fs::path& path : list_files(argv[i])) {
      std::ifstream file(path, std::ios::binary);
      inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    }
  }
  for (const Bytes& input : inputs) run(input);
  std::uint64_t random = 42;
  for (long i = 0; i < mutations && !inputs.empty(); ++i) {
    run(damage(inputs[static_cast<std::size_t>(i) % inputs.size()], random));
  }
  std::printf("%zu files and %ld damaged copies: no crash\n", inputs.size(),
              inputs.empty() ? 0L : mutations);
  return 0;
}
