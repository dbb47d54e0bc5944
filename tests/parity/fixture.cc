#include "tests/parity/fixture.h"

#include <millrace/pipeline/base/error.h>
#include <millrace/training/checkpoint/checkpoint.h>
#include <millrace/training/checkpoint/tensors.h>

#include <algorithm>

namespace millrace {

Fixture::Fixture(const std::filesystem::path& path) : all_(read_checkpoint(path)) {
  for (const auto& [key, value] : all_.as_dict()) {
    if (is_tensor(value)) tensors_.emplace(key.as_string(), as_tensor(value));
  }
}

const torch::Tensor& Fixture::tensor(const std::string& key) const {
  const auto found = tensors_.find(key);
  if (found != tensors_.end()) return found->second;
  throw Error(std::string("expected a tensor '") + key + "', found " + all_[key].kind());
}

NamedTensors Fixture::with(const std::string& prefix) const {
  NamedTensors found;
  for (const auto& [key, value] : all_.as_dict()) {
    const std::string& name = key.as_string();
    if (name.starts_with(prefix)) found.emplace_back(name.substr(prefix.size()), tensor(name));
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
