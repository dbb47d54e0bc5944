// The vector quantizer (VQ) with a codebook updated by exponential moving average. Names, defaults
// and arithmetic are those of vector-quantize-pytorch 1.14.24; weights can be exchanged with it.
//
//   VectorQuantizer quantizer(VectorQuantizerOptions{.dim = 64, .codebook_size = 512});
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

// The ranks that share a codebook. As in the package, statistics are summed over all ranks.
struct CodebookRanks {
  std::int64_t rank = 0;
  std::int64_t world = 1;
  // Sums a tensor over all ranks, in place: features on any device, or integers on the CPU.
  std::function<void(torch::Tensor&)> sum = [](torch::Tensor&) {};
};

class CodebookImpl : public torch::nn::Module {
 public:
  explicit CodebookImpl(const VectorQuantizerOptions& options);

  // The index of the code nearest to each vector of [vectors, dim]. drawn() draws codes at random
  // instead; near codes are more likely.
  torch::Tensor nearest(const torch::Tensor& x);
  torch::Tensor drawn(const torch::Tensor& x);
  // Like nearest(), with margins.
  ChosenCodes chosen(const torch::Tensor& x);
  torch::Tensor codes() const { return embed_[0]; }
  void start(const torch::Tensor& x);  // initializes by k-means at the first call
  // Updates the moving averages. Dead codes are replaced by random rows of `fresh` (default: `x`).
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

  // `features`: [batch, channels, height, width].
  Quantized forward(const torch::Tensor& features);
  // The indices that forward() returns in eval mode, with their margins.
  ChosenCodes choose(const torch::Tensor& features);
  // Converts indices [batch, height, width] to features.
  torch::Tensor decode(const torch::Tensor& indices);
  Codebook& codebook() { return codebook_; }

 private:
  // Converts [batch, channels, height, width] to [batch, positions, codebook_dim].
  torch::Tensor vectors(const torch::Tensor& features);

  VectorQuantizerOptions options_;
  torch::nn::Linear project_in_{nullptr}, project_out_{nullptr};
  Codebook codebook_{nullptr};
};
TORCH_MODULE(VectorQuantizer);

}  // namespace millrace
