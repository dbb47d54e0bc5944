// The hash of a model's weights and configuration, which caches record.
#pragma once

#include <millrace/training/checkpoint/tensors.h>

#include <array>
#include <cstdio>
#include <string>

#include <torch/types.h>
#include <xxhash.h>

namespace millrace {

inline std::string weights_hash(const NamedTensors& weights, const std::string& configuration) {
  XXH3_state_t* state = XXH3_createState();
  XXH3_64bits_reset(state);
  XXH3_64bits_update(state, configuration.data(), configuration.size());
  for (const auto& [name, tensor] : weights) {
    const torch::Tensor packed = tensor.detach().contiguous();
    XXH3_64bits_update(state, name.data(), name.size());
    XXH3_64bits_update(state, packed.data_ptr(), packed.nbytes());
  }
  const std::uint64_t hash = XXH3_64bits_digest(state);
  XXH3_freeState(state);
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(hash));
  return std::string("xxh3:") + text.data();
}

}  // namespace millrace
