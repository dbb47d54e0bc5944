// The convolutions along the faces in the mesh autoencoder's decoder. Private to training/models.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

namespace millrace {

// Two convolutions, each followed by a norm over the channels, and a factor for each channel that
// follows from the whole mesh, beside the input. [batch, channels, faces].
class FaceResnetBlockImpl : public torch::nn::Module {
 public:
  FaceResnetBlockImpl(std::int64_t in, std::int64_t out, double dropout);
  // `mask`: bool [batch, 1, faces], or undefined: all faces are there.
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& mask);

 private:
  torch::Tensor block(torch::nn::Conv1d& conv, const torch::Tensor& x, const torch::Tensor& mask);
  torch::Tensor excite(const torch::Tensor& x, const torch::Tensor& mask);

  double dropout_;
  torch::nn::Conv1d first_, second_, residual_{nullptr};
  torch::nn::Linear squeeze_, excite_;
};
TORCH_MODULE(FaceResnetBlock);

}  // namespace millrace
