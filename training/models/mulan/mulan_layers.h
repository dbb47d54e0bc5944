// The transformer of both encoders. Private to training/models.
#pragma once

#include <millrace/training/models/mulan/mulan_config.h>

#include <vector>

#include <torch/nn/module.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

namespace millrace {

torch::Tensor unit_length(const torch::Tensor& x);

// LayerNorm with a gain and no bias.
class GainNormImpl : public torch::nn::Module {
 public:
  explicit GainNormImpl(std::int64_t dim);
  torch::Tensor forward(const torch::Tensor& x);

 private:
  torch::Tensor gain_;
};
TORCH_MODULE(GainNorm);

// Bias or mask of an attention. At most one of the two is defined.
struct AttentionBias {
  torch::Tensor bias{};    // float, [batch or 1, heads, queries, keys]; may require a gradient
  torch::Tensor seen{};    // bool, [batch, keys]: true where a key is valid
  bool reference = false;  // reference path: operations in the order of the Python package
};

class MulanAttentionImpl : public torch::nn::Module {
 public:
  explicit MulanAttentionImpl(const MulanTransformerConfig& config);
  torch::Tensor forward(const torch::Tensor& x, const AttentionBias& bias);

 private:
  // Queries, keys and values are [batch, heads, positions, dim_head]; queries and keys are unit
  // vectors.
  torch::Tensor attend(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                       const AttentionBias& bias) const;
  torch::Tensor attend_reference(const torch::Tensor& q, const torch::Tensor& k,
                                 const torch::Tensor& v, const AttentionBias& bias) const;

  std::int64_t heads_;
  double dropout_;
  torch::Tensor q_scale_, k_scale_;
  GainNorm norm_{nullptr};
  torch::nn::Linear to_q_{nullptr}, to_kv_{nullptr};
  torch::nn::Sequential to_out_{nullptr};
};
TORCH_MODULE(MulanAttention);

class MulanTransformerImpl : public torch::nn::Module {
 public:
  explicit MulanTransformerImpl(const MulanTransformerConfig& config);
  // If `layers` is not null, appends the output of each layer.
  torch::Tensor forward(torch::Tensor x, const AttentionBias& bias,
                        std::vector<torch::Tensor>* layers = nullptr);

 private:
  torch::nn::ModuleList layers_;
};
TORCH_MODULE(MulanTransformer);

}  // namespace millrace
