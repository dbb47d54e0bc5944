// The optional attention of the mesh autoencoder's encoder and decoder: over all faces in linear
// time, over windows of faces, and a gated layer. Private to training/models.
#pragma once

#include <millrace/training/models/mesh_autoencoder/mesh_autoencoder_config.h>

#include <memory>

#include <torch/nn/module.h>

namespace millrace {

// [batch, faces, dim] to the same; `mask`: bool [batch, faces], which faces there are.
class FaceAttentionBlock : public torch::nn::Module {
 public:
  FaceAttentionBlock(std::int64_t dim, const MeshAutoencoderConfig& config);
  ~FaceAttentionBlock() override;
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& mask);

 private:
  class Linear;
  class Local;
  class Gated;
  std::shared_ptr<Linear> linear_;  // null: without
  std::shared_ptr<Local> local_;
  std::shared_ptr<Gated> gated_;
};

}  // namespace millrace
