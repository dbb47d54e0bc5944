// Lookup-free quantization (LFQ): each dimension becomes its sign. The codebook is the corners of a
// cube, so it needs no table. Names, defaults and arithmetic are those of vector-quantize-pytorch
// 1.14.24; weights can be exchanged with it.
//
//   Lfq quantizer(LfqOptions{.dim = 64, .codebook_size = 1024});
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

// The input projection for `cosine_sim_project_in`: scaled cosine similarity to each column.
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
  // Throws an Error of kind usage if the options are inconsistent.
  explicit LfqImpl(LfqOptions options);

  // `counted`: bool [batch, vectors]; the loss uses only vectors where it is true.
  Quantized forward(const torch::Tensor& features, const torch::Tensor& counted = {});
  // The indices that forward() returns in eval mode, with their margins.
  ChosenCodes choose(const torch::Tensor& features);
  // Features of the codes `indices`, which have the shape that forward() returned.
  torch::Tensor decode(const torch::Tensor& indices);

  void set_draws(std::shared_ptr<Draws> draws) { draws_ = std::move(draws); }
  void set_factored_entropies(bool factored) { options_.factored_entropies = factored; }

 private:
  torch::Tensor project_in(const torch::Tensor& x);
  // The vectors whose signs become the code: [batch, vectors, codebooks, bits].
  torch::Tensor vectors(const torch::Tensor& features);
  bool transposes(const torch::Tensor& features) const;
  // Reshapes [batch, vectors, codebooks] to the batch and spatial shape of `features`.
  torch::Tensor as_features(const torch::Tensor& of_vectors, const torch::Tensor& features) const;
  // Sets the entropies of `result`, over the `chosen` vectors of `input` (all if undefined).
  void add_entropies(const torch::Tensor& input, const torch::Tensor& chosen, Quantized& result);
  // Sets the loss of `result`.
  void add_losses(const torch::Tensor& input, const torch::Tensor& signs,
                  const torch::Tensor& counted, Quantized& result);

  LfqOptions options_;
  std::int64_t bits_ = 0;
  bool keep_codebooks_ = false;
  torch::Tensor mask_;      // the value of each bit; the first is the most significant
  torch::Tensor codebook_;  // all codes, [codebook_size, bits]; allocated at first use
  torch::nn::Linear linear_in_{nullptr}, linear_out_{nullptr};
  CosineLinear cosine_in_{nullptr};
  std::shared_ptr<Draws> draws_ = std::make_shared<Draws>();
};
TORCH_MODULE(Lfq);

}  // namespace millrace
