// The convolutions along the faces in the mesh autoencoder's decoder. Private to training/models.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

namespace millrace {

// Meshes of several lengths, one behind the other: [1, channels, rows]. Rows of zeros between them
// keep them apart, so that a convolution sees what it would see of each alone, and no time is spent
// on what only fills a batch up. Undefined tensors: a batch of equal lengths, as it is.
struct PackedMeshes {
  torch::Tensor there;    // bool [1, 1, rows]: no row between meshes
  torch::Tensor members;  // float [rows, meshes]: 1 for the rows of each
  torch::Tensor places;   // int64 [faces]: which row is each face's

  // `mask`: bool [batch, faces]. `apart`: rows between meshes.
  static PackedMeshes of(const torch::Tensor& mask, std::int64_t apart);
  bool defined() const { return there.defined(); }
};

// Two convolutions, each followed by a norm over the channels, and a factor for each channel that
// follows from the whole mesh, beside the input. [batch, channels, faces].
class FaceResnetBlockImpl : public torch::nn::Module {
 public:
  FaceResnetBlockImpl(std::int64_t in, std::int64_t out, double dropout);
  torch::Tensor forward(const torch::Tensor& x, const PackedMeshes& packed);
  // Of a batch that is filled up, every sum in Python's order. `mask`: bool [batch, 1, faces].
  torch::Tensor forward_reference(const torch::Tensor& x, const torch::Tensor& mask);

 private:
  torch::Tensor block(torch::nn::Conv1d& conv, const torch::Tensor& x, const PackedMeshes& packed);
  torch::Tensor excite(const torch::Tensor& x, const PackedMeshes& packed);
  torch::Tensor block_reference(torch::nn::Conv1d& conv, const torch::Tensor& x,
                                const torch::Tensor& absent);
  torch::Tensor factors(const torch::Tensor& mean);  // [meshes, channels]

  double dropout_;
  torch::nn::Conv1d first_, second_, residual_{nullptr};
  torch::nn::Linear squeeze_, excite_;
};
TORCH_MODULE(FaceResnetBlock);

}  // namespace millrace
