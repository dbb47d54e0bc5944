// The stack of attention and feed-forward layers that MeshGPT's transformer decodes with: the
// Decoder of x-transformers 1.29.2, with its names of tensors. Private to training/models.
#pragma once

#include "decoder_positions.h"

#include <millrace/training/models/mesh_transformer/mesh_transformer_config.h>

#include <cstdint>
#include <memory>
#include <vector>

#include <torch/nn/module.h>
#include <torch/types.h>

namespace millrace {

struct DecoderOptions {
  DecoderArguments arguments{};
  std::int64_t dim = 0, depth = 0, heads = 0, dim_head = 0;
  double dropout = 0;
  bool flash = true;       // torch's fused attention: the same sums in another order
  bool causal = true;      // false: an encoder
  bool reference = false;  // every operation as the package has it, and in its order
  // With a text to attend to: its channels, or 0; and the learned keys and values before it.
  std::int64_t cross_dim = 0, cross_num_mem_kv = 0;
};

// Keys and values of what was decoded before, one pair for each attention.
struct AttentionCache {
  torch::Tensor keys, values;  // [batch, heads, length, channels]
};
using DecoderCache = std::vector<AttentionCache>;

// What the cross attention looks at. `mask` [batch, length]: true where it may.
struct DecoderContext {
  torch::Tensor embeds, mask;
};

class DecoderLayer;

class DecoderLayers : public torch::nn::Module {
 public:
  explicit DecoderLayers(const DecoderOptions& options);
  ~DecoderLayers() override;
  // `x` [batch, length, dim]. With a cache, x is what follows what the cache has seen, and is added
  // to it. `mask` [batch, length], for encoders: false where nothing is.
  torch::Tensor forward(const torch::Tensor& x, const DecoderContext& context = {},
                        DecoderCache* cache = nullptr, const torch::Tensor& mask = {});

 private:
  DecoderPositions positions_;
  std::vector<std::shared_ptr<DecoderLayer>> layers_;
  std::shared_ptr<torch::nn::Module> final_norm_;
};

}  // namespace millrace
