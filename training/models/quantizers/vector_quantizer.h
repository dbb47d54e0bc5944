// The vector quantizer with a codebook that follows the features as a moving average. Names,
// defaults and arithmetic are those of vector-quantize-pytorch 1.14.24, so weights go both ways.
//
//   VectorQuantizer quantizer({.dim = 64, .codebook_size = 512, .codebook_dim = 32});
//   Quantized result = quantizer->forward(features);      // [batch, 64, height, width]
#pragma once

#include <millrace/training/models/module/random_source.h>
#include <millrace/training/models/quantizers/quantizer.h>
#include <millrace/training/models/quantizers/quantizer_options.h>

#include <cstdint>
#include <functional>
#include <memory>

#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>

namespace millrace {

// The ranks that share a codebook. Their features count together, as in the package.
struct CodebookRanks {
  std::int64_t rank = 0;
  std::int64_t world = 1;
  // Sums a tensor over all ranks, in place; features, or whole numbers on the CPU.
  std::function<void(torch::Tensor&)> sum = [](torch::Tensor&) {};
};

class CodebookImpl : public torch::nn::Module {
 public:
  explicit CodebookImpl(const VectorQuantizerOptions& options);

  // Which code is nearest to each of [vectors, dim]; or drawn, the nearer the likelier.
  torch::Tensor nearest(const torch::Tensor& x);
  torch::Tensor drawn(const torch::Tensor& x);
  // As nearest(), and how much nearer than the next.
  ChosenCodes chosen(const torch::Tensor& x);
  torch::Tensor codes() const { return embed_[0]; }
  void start(const torch::Tensor& x);  // by k-means, unless it has been
  // Codes that have died are replaced by some of `fresh`; unless given, by some of `x`.
  void follow(const torch::Tensor& x, const torch::Tensor& indices,
              const torch::Tensor& fresh = {});

  CodebookRanks ranks;
  std::shared_ptr<Draws> draws = std::make_shared<Draws>();

 private:
  torch::Tensor distances(const torch::Tensor& x, const torch::Tensor& codes) const;
  torch::Tensor sample(const torch::Tensor& x, std::int64_t count) const;
  void replace_dead(const torch::Tensor& x);
  torch::Tensor sums_by_code(const torch::Tensor& x, const torch::Tensor& indices);

  VectorQuantizerOptions options_;
  torch::Tensor initted_, cluster_size_, embed_avg_, embed_;
};
TORCH_MODULE(Codebook);

class VectorQuantizerImpl : public torch::nn::Module {
 public:
  explicit VectorQuantizerImpl(const VectorQuantizerOptions& options);

  // [batch, channels, height, width]
  Quantized forward(const torch::Tensor& features);
  // The same indices, in eval mode.
  ChosenCodes choose(const torch::Tensor& features);
  // [batch, height, width] to features
  torch::Tensor decode(const torch::Tensor& indices);
  Codebook& codebook() { return codebook_; }

 private:
  // [batch, channels, height, width] to [batch, places, codebook_dim]
  torch::Tensor vectors(const torch::Tensor& features);

  VectorQuantizerOptions options_;
  torch::nn::Linear project_in_{nullptr}, project_out_{nullptr};
  Codebook codebook_{nullptr};
};
TORCH_MODULE(VectorQuantizer);

}  // namespace millrace
