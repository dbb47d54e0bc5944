// Where the tokens of a decoder stand, as x-transformers tells its attention: turned keys and
// queries, or a bias on what they find alike. Private to training/models.
#pragma once

#include <millrace/training/models/mesh_transformer/mesh_transformer_config.h>

#include <cstdint>

#include <torch/nn/module.h>
#include <torch/types.h>

namespace millrace {

// Of some queries, and of all keys up to them.
struct Positions {
  torch::Tensor cosine, sine;  // [queries, channels that turn], or undefined
  torch::Tensor bias;          // [heads, queries, keys], or undefined

  // Queries, or the keys at the same places: [batch, heads, queries, channels].
  torch::Tensor turned(const torch::Tensor& x) const;
};

class DecoderPositions {
 public:
  DecoderPositions(const DecoderArguments& arguments, std::int64_t heads, std::int64_t dim_head)
      : arguments_(arguments), heads_(heads), dim_head_(dim_head) {}
  // Their tensors, under Python's names.
  void register_in(torch::nn::Module& decoder);
  // Of so many queries after `before` others.
  Positions of(std::int64_t queries, std::int64_t before, const torch::Device& device) const;

 private:
  DecoderArguments arguments_;
  std::int64_t heads_, dim_head_;
  std::shared_ptr<torch::nn::Module> rotary_;  // its buffer moves with the model
  torch::Tensor slopes_, relative_bias_;
};

}  // namespace millrace
