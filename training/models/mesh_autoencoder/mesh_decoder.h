// The 1D convolutions over faces of the mesh autoencoder's decoder. Private to training/models.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

namespace millrace {

// Meshes of different lengths, concatenated to [1, channels, rows]. Rows of zeros separate them, so
// that a convolution sees each mesh as if it were alone, and padding costs no time. Undefined
// tensors: all meshes have the same length, and the batch is used as it is.
struct PackedMeshes {
  torch::Tensor is_face;  // bool [1, 1, rows]: false for rows between meshes
  torch::Tensor members;  // float [rows, meshes]: 1 if the row belongs to the mesh
  torch::Tensor places;   // int64 [faces]: the row of each face

  // `mask`: bool [batch, faces], false for padding. `gap`: number of rows between meshes.
  static PackedMeshes of(const torch::Tensor& mask, std::int64_t gap);
  bool defined() const { return is_face.defined(); }
};

// Residual block for [batch, channels, faces]: two convolutions, each with a norm over the
// channels, then squeeze-and-excitation over the whole mesh.
class FaceResnetBlockImpl : public torch::nn::Module {
 public:
  FaceResnetBlockImpl(std::int64_t in, std::int64_t out, double dropout);
  torch::Tensor forward(const torch::Tensor& x, const PackedMeshes& packed);
  // Reference path: padded batch, operations in the order of the Python package. `mask`: bool
  // [batch, 1, faces].
  torch::Tensor forward_reference(const torch::Tensor& x, const torch::Tensor& mask);

 private:
  torch::Tensor block(torch::nn::Conv1d& conv, const torch::Tensor& x, const PackedMeshes& packed);
  torch::Tensor excite(const torch::Tensor& x, const PackedMeshes& packed);
  torch::Tensor block_reference(torch::nn::Conv1d& conv, const torch::Tensor& x,
                                const torch::Tensor& absent);
  torch::Tensor factors(const torch::Tensor& mean);  // [meshes, channels], the excitation gates

  double dropout_;
  torch::nn::Conv1d first_, second_, residual_{nullptr};
  torch::nn::Linear squeeze_, excite_;
};
TORCH_MODULE(FaceResnetBlock);

}  // namespace millrace
