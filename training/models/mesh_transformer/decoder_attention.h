// The attention layers of a decoder, and the base class of its layers. Private to training/models.
#pragma once

#include "decoder_layers.h"

#include <memory>

#include <torch/nn/modules/linear.h>

namespace millrace {

// Inputs of a layer besides x.
struct LayerInput {
  const Positions& positions;
  const DecoderContext& context;
  const torch::Tensor& mask;  // bool [batch, keys], or undefined: all keys are valid
  AttentionCache* cache;
};

class DecoderLayer : public torch::nn::Module {
 public:
  virtual torch::Tensor forward(const torch::Tensor& x, const LayerInput& input) = 0;
  virtual bool attends() const { return false; }
};

// Causal self-attention, or cross-attention to a text (`cross`).
std::shared_ptr<DecoderLayer> make_attention(const DecoderOptions& options, bool cross);

torch::nn::Linear decoder_linear(std::int64_t in, std::int64_t out, bool bias = false);
torch::Tensor to_unit_length(const torch::Tensor& x);

}  // namespace millrace
