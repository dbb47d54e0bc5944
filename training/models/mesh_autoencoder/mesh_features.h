// What the mesh autoencoder sees of a face, and how its coordinates become bins and are compared
// with those that are to be. Private to training/models.
#pragma once

#include <millrace/training/models/mesh_autoencoder/mesh_autoencoder_config.h>

#include <torch/types.h>

namespace millrace {

struct FaceFeatures {         // all int64, as bins
  torch::Tensor coordinates;  // [faces, corners * 3]
  torch::Tensor angles;       // [faces, corners]
  torch::Tensor area;         // [faces, 1]
  torch::Tensor normals;      // [faces, 3]
};

// `corners`: float [faces, corners, 3]
FaceFeatures face_features(const torch::Tensor& corners, const MeshAutoencoderConfig& config);

// Of bins, the middles.
torch::Tensor undiscretize(const torch::Tensor& bins, const MeshAutoencoderConfig& config);

// The sum over all faces and coordinates of the cross entropy between a linear layer's logits and
// the bins, blurred over their neighbours. `hidden`: [faces, dim]; `bins`: [faces, coordinates].
// Logits are only there for some faces at a time; gradients are found on the way.
torch::Tensor coordinate_loss(const torch::Tensor& hidden, const torch::Tensor& weight,
                              const torch::Tensor& bias, const torch::Tensor& bins,
                              const MeshAutoencoderConfig& config);

// The same over the number of coordinates, of a batch that is filled up and every sum in Python's
// order. `logits`: [batch, faces, coordinates, bins]; `bins`: [batch, faces, coordinates]; `mask`:
// bool [batch, faces].
torch::Tensor coordinate_loss_reference(const torch::Tensor& logits, const torch::Tensor& bins,
                                        const torch::Tensor& mask,
                                        const MeshAutoencoderConfig& config);

// The likeliest bins, [faces, coordinates], from the same layer; likewise.
torch::Tensor likeliest_bins(const torch::Tensor& hidden, const torch::Tensor& weight,
                             const torch::Tensor& bias, const MeshAutoencoderConfig& config);

}  // namespace millrace
