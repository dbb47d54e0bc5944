// The input features of faces, the discretization of coordinates, and the reconstruction loss.
// Private to training/models.
#pragma once

#include <millrace/training/models/mesh_autoencoder/mesh_autoencoder_config.h>

#include <torch/types.h>

namespace millrace {

struct FaceFeatures {         // int64 bins
  torch::Tensor coordinates;  // [faces, corners * 3]
  torch::Tensor angles;       // [faces, corners]
  torch::Tensor area;         // [faces, 1]
  torch::Tensor normals;      // [faces, 3]
};

// `corners`: float [faces, corners, 3]
FaceFeatures face_features(const torch::Tensor& corners, const MeshAutoencoderConfig& config);

// The center of each bin.
torch::Tensor undiscretize(const torch::Tensor& bins, const MeshAutoencoderConfig& config);

// Sum over all faces and coordinates of the cross entropy between a linear layer's logits and the
// blurred bins. `hidden`: [faces, dim]; `bins`: [faces, coordinates]. Computes logits for a few
// faces at a time, and their gradients in the forward pass, so that memory stays small.
torch::Tensor coordinate_loss(const torch::Tensor& hidden, const torch::Tensor& weight,
                              const torch::Tensor& bias, const torch::Tensor& bins,
                              const MeshAutoencoderConfig& config);

// Reference path: the mean over a padded batch, operations in the order of the Python package.
// `logits`: [batch, faces, coordinates, bins]; `bins`: [batch, faces, coordinates]; `mask`: bool
// [batch, faces].
torch::Tensor coordinate_loss_reference(const torch::Tensor& logits, const torch::Tensor& bins,
                                        const torch::Tensor& mask,
                                        const MeshAutoencoderConfig& config);

// The most likely bins, [faces, coordinates], of the same linear layer; also a few faces at a time.
torch::Tensor likeliest_bins(const torch::Tensor& hidden, const torch::Tensor& weight,
                             const torch::Tensor& bias, const MeshAutoencoderConfig& config);

}  // namespace millrace
