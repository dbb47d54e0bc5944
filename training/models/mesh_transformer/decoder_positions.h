// Position encodings of x-transformers: rotary embeddings, or a bias on the logits. Private to
// training/models.
#pragma once

#include <millrace/training/models/mesh_transformer/mesh_transformer_config.h>

#include <cstdint>

#include <torch/nn/module.h>
#include <torch/types.h>

namespace millrace {

// Position encodings of some queries and of all keys up to them.
struct Positions {
  torch::Tensor cosine, sine;  // [queries, rotated channels], or undefined
  torch::Tensor bias;          // [heads, queries, keys], or undefined

  // Applies rotary embeddings to queries, or to the keys at the same positions: [batch, heads,
  // queries, channels].
  torch::Tensor rotated(const torch::Tensor& x) const;
};

class DecoderPositions {
 public:
  DecoderPositions(const DecoderArguments& arguments, std::int64_t heads, std::int64_t dim_head)
      : arguments_(arguments), heads_(heads), dim_head_(dim_head) {}
  // Registers the tensors under the package's names.
  void register_in(torch::nn::Module& decoder);
  // Encodings of `queries` tokens that follow `before` earlier tokens.
  Positions of(std::int64_t queries, std::int64_t before, const torch::Device& device) const;

 private:
  DecoderArguments arguments_;
  std::int64_t heads_, dim_head_;
  std::shared_ptr<torch::nn::Module> rotary_;  // a module, so that its buffer moves with the model
  torch::Tensor slopes_, relative_bias_;
};

}  // namespace millrace
