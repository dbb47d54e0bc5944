// Optional attention layers of the mesh autoencoder: linear attention over all faces, local
// attention over windows of faces, and a gated feed-forward layer. Private to training/models.
#pragma once

#include <millrace/training/models/mesh_autoencoder/mesh_autoencoder_config.h>

#include <memory>

#include <torch/nn/module.h>

namespace millrace {

// Maps [batch, faces, dim] to the same shape. `mask`: bool [batch, faces], false for padding.
class FaceAttentionBlock : public torch::nn::Module {
 public:
  FaceAttentionBlock(std::int64_t dim, const MeshAutoencoderConfig& config);
  ~FaceAttentionBlock() override;
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& mask);

 private:
  class Linear;
  class Local;
  class Gated;
  std::shared_ptr<Linear> linear_;  // null if disabled
  std::shared_ptr<Local> local_;
  std::shared_ptr<Gated> gated_;
};

}  // namespace millrace
