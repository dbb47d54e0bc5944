// The transformer that MuLaN's audio and text have in common. Private to training/models.
#pragma once

#include <millrace/training/models/mulan/mulan_config.h>

#include <vector>

#include <torch/nn/module.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

namespace millrace {

torch::Tensor unit_length(const torch::Tensor& x);

// A layer norm with a gain and no bias.
class GainNormImpl : public torch::nn::Module {
 public:
  explicit GainNormImpl(std::int64_t dim);
  torch::Tensor forward(const torch::Tensor& x);

 private:
  torch::Tensor gain_;
};
TORCH_MODULE(GainNorm);

// What is added to the logits of an attention. At most one of the two is defined.
struct AttentionBias {
  torch::Tensor bias{};    // float, [batch or 1, heads, to, from]; may have a gradient
  torch::Tensor seen{};    // bool, [batch, from]: which keys there are
  bool reference = false;  // every operation as the package has it
};

class MulanAttentionImpl : public torch::nn::Module {
 public:
  explicit MulanAttentionImpl(const MulanTransformerConfig& config);
  torch::Tensor forward(const torch::Tensor& x, const AttentionBias& bias);

 private:
  // Queries, keys and values are [batch, heads, places, dim_head], the first two of unit length.
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
  // `layers`, if not null, gets what each layer gave.
  torch::Tensor forward(torch::Tensor x, const AttentionBias& bias,
                        std::vector<torch::Tensor>* layers = nullptr);

 private:
  torch::nn::ModuleList layers_;
};
TORCH_MODULE(MulanTransformer);

}  // namespace millrace
