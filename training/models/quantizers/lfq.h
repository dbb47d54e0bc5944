// The lookup-free quantizer: every dimension becomes its sign, so the codebook is the corners of a
// cube and needs no table. Names, defaults and arithmetic are those of vector-quantize-pytorch
// 1.14.24, so weights go both ways.
//
//   Lfq quantizer({.dim = 64, .codebook_size = 1024});
//   Quantized result = quantizer->forward(features);      // [batch, 64, height, width]
#pragma once

#include <millrace/training/models/module/random_source.h>
#include <millrace/training/models/quantizers/quantizer.h>
#include <millrace/training/models/quantizers/quantizer_options.h>

#include <cstdint>
#include <memory>

#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>

namespace millrace {

// The projection of `cosine_sim_project_in`: the cosine to each column, scaled.
class CosineLinearImpl : public torch::nn::Module {
 public:
  CosineLinearImpl(std::int64_t in, std::int64_t out, double scale);
  torch::Tensor forward(const torch::Tensor& x);

 private:
  torch::Tensor weight_;
  double scale_;
};
TORCH_MODULE(CosineLinear);

class LfqImpl : public torch::nn::Module {
 public:
  // Throws an Error of kind usage if the numbers do not fit each other.
  explicit LfqImpl(LfqOptions options);

  // `counted`: bool, [batch, feature vectors of each]; the loss looks at these alone.
  Quantized forward(const torch::Tensor& features, const torch::Tensor& counted = {});
  // The same indices, in eval mode.
  ChosenCodes choose(const torch::Tensor& features);
  // The features that stand for `indices`, which have the shape that forward() gave them.
  torch::Tensor decode(const torch::Tensor& indices);

  void set_draws(std::shared_ptr<Draws> draws) { draws_ = std::move(draws); }
  void set_factored_entropies(bool factored) { options_.factored_entropies = factored; }

 private:
  torch::Tensor project_in(const torch::Tensor& x);
  // Features to what has its signs taken: [batch, vectors, codebooks, bits].
  torch::Tensor vectors(const torch::Tensor& features);
  bool transposes(const torch::Tensor& features) const;
  // Of [batch, vectors, codebooks] to the shape of the features that they belong to.
  torch::Tensor as_features(const torch::Tensor& of_vectors, const torch::Tensor& features) const;
  // Fills the entropies: of those of `input` that are `chosen`, if that is given.
  void add_entropies(const torch::Tensor& input, const torch::Tensor& chosen, Quantized& result);
  // And the loss.
  void add_losses(const torch::Tensor& input, const torch::Tensor& signs,
                  const torch::Tensor& counted, Quantized& result);

  LfqOptions options_;
  std::int64_t bits_ = 0;
  bool keep_codebooks_ = false;
  torch::Tensor mask_;      // the value of each bit, the first being the highest
  torch::Tensor codebook_;  // every code, [codebook_size, bits]; made when first needed
  torch::nn::Linear linear_in_{nullptr}, linear_out_{nullptr};
  CosineLinear cosine_in_{nullptr};
  std::shared_ptr<Draws> draws_ = std::make_shared<Draws>();
};
TORCH_MODULE(Lfq);

}  // namespace millrace
