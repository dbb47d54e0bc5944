#include "tests/parity/fixture.h"

#include <millrace/training/checkpoint/checkpoint.h>

#include <algorithm>

namespace millrace {

Fixture::Fixture(const std::filesystem::path& path) : all_(read_checkpoint(path)) {}

NamedTensors Fixture::with(const std::string& prefix) const {
  NamedTensors found;
  for (const auto& [key, value] : all_.as_dict()) {
    const std::string& name = key.as_string();
    if (name.starts_with(prefix)) found.emplace_back(name.substr(prefix.size()), value.as_tensor());
  }
  return found;
}

std::shared_ptr<Draws> Fixture::draws(const std::string& prefix) const {
  NamedTensors recorded = with(prefix);  // "<i>_<what>"
  std::sort(recorded.begin(), recorded.end(),
            [](const auto& a, const auto& b) { return std::stol(a.first) < std::stol(b.first); });
  return std::make_shared<Draws>(std::move(recorded));
}

}  // namespace millrace
