// The transformer layers of MeshGPT's decoders: the Decoder of x-transformers 1.29.2, with its
// parameter names. Private to training/models.
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
  bool flash = true;       // torch's fused attention: equal up to rounding
  bool causal = true;      // false: an encoder
  bool reference = false;  // reference path: operations in the order of the Python package
  // Channels of the text for cross-attention, or 0; and the number of learned keys and values
  // before the text's.
  std::int64_t cross_dim = 0, cross_num_mem_kv = 0;
};

// KV cache: the keys and values of the earlier tokens of one attention layer.
struct AttentionCache {
  torch::Tensor keys, values;  // [batch, heads, length, channels]
};
using DecoderCache = std::vector<AttentionCache>;

// What cross-attention attends to. `mask` [batch, length]: false for padding.
struct DecoderContext {
  torch::Tensor embeds, mask;
};

class DecoderLayer;

class DecoderLayers : public torch::nn::Module {
 public:
  explicit DecoderLayers(const DecoderOptions& options);
  ~DecoderLayers() override;
  // `x`: [batch, length, dim]. With a cache, x continues the tokens in the cache and is appended to
  // it. `mask` [batch, length], for encoders only: false for padding.
  torch::Tensor forward(const torch::Tensor& x, const DecoderContext& context = {},
                        DecoderCache* cache = nullptr, const torch::Tensor& mask = {});

 private:
  DecoderPositions positions_;
  std::vector<std::shared_ptr<DecoderLayer>> layers_;
  std::shared_ptr<torch::nn::Module> final_norm_;
};

}  // namespace millrace
