// The command line that trains a tiny VQGAN on a folder of pictures.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace millrace {

// `more`: flags with their values; they replace the defaults below.
inline std::vector<std::string> tiny_command(const std::filesystem::path& pictures,
                                             const std::filesystem::path& results, int steps,
                                             const std::vector<std::string>& more = {}) {
  std::map<std::string, std::vector<std::string>> flags{
      {"--results-folder", {results.string()}},
      {"--num-train-steps", {std::to_string(steps)}},
      {"--batch-size", {"3"}},
      {"--image-size", {"16"}},
      {"--dim", {"16"}},
      {"--layers", {"1"}},
      {"--discr-layers", {"1"}},
      {"--codebook-size", {"16"}},
      {"--encdec-num-resnet-blocks", {"0"}},
      {"--valid-frac", {"0.2"}},
      {"--checkpoint-every", {"4"}},
      {"--save-results-every", {"10"}},
      {"--threads", {"1"}},
      {"--workers", {"1"}}};
  std::vector<std::string>* values = nullptr;
  for (const std::string& word : more) {
    if (word.starts_with("--")) {
      values = &flags[word];
      values->clear();
    } else {
      values->push_back(word);
    }
  }
  std::vector<std::string> all{pictures.string()};
  for (const auto& [flag, given] : flags) {
    all.push_back(flag);
    all.insert(all.end(), given.begin(), given.end());
  }
  return all;
}

}  // namespace millrace
