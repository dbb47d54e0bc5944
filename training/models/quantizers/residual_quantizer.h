// Residual quantizers: each quantizes the residual of the one before. Names and arithmetic are
// those of ResidualLFQ, and of ResidualVQ with a shared codebook, in vector-quantize-pytorch
// 1.14.24. Private to training/models.
#pragma once

#include <millrace/training/models/mesh_autoencoder/mesh_autoencoder_config.h>
#include <millrace/training/models/quantizers/lfq.h>
#include <millrace/training/models/quantizers/vector_quantizer.h>

#include <memory>
#include <vector>

#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>

namespace millrace {

struct ResidualCodes {
  torch::Tensor features;  // shape of the input
  torch::Tensor indices;   // int64 [batch, vectors, quantizers]; -1 for skipped quantizers
  torch::Tensor losses;    // [quantizers]
};

class ResidualQuantizer : public torch::nn::Module {
 public:
  // `x`: [batch, vectors, dim]. `counted`: bool [batch, vectors]; the losses and codebook updates
  // use only vectors where it is true.
  ResidualCodes forward(const torch::Tensor& x, const torch::Tensor& counted);
  // Features of the codes `indices`, [batch, vectors, quantizers]; the last quantizers may be
  // missing.
  torch::Tensor decode(const torch::Tensor& indices);

  virtual void set_draws(std::shared_ptr<Draws> draws) { draws_ = std::move(draws); }
  // Reference path: operations in the order of the Python package.
  virtual void set_reference(bool /*reference*/) {}
  // Null for quantizers without a learned codebook.
  virtual Codebook codebook() { return nullptr; }

 protected:
  ResidualQuantizer(const MeshAutoencoderConfig& config, std::int64_t codebook_dim);
  virtual Quantized quantize(std::int64_t which, const torch::Tensor& x,
                             const torch::Tensor& counted) = 0;
  virtual torch::Tensor codes(std::int64_t which, const torch::Tensor& indices) = 0;
  std::shared_ptr<Draws> draws() const { return draws_; }

 private:
  std::int64_t last_quantizer();

  std::int64_t quantizers_;
  ResidualConfig options_;
  torch::nn::Linear project_in_{nullptr}, project_out_{nullptr};
  std::shared_ptr<Draws> draws_ = std::make_shared<Draws>();
};

std::shared_ptr<ResidualQuantizer> make_residual_quantizer(const MeshAutoencoderConfig& config);

}  // namespace millrace
