// The autoencoder of MeshGPT, equal to meshgpt-pytorch 1.2.2: encodes triangle meshes as codes,
// several per vertex, and decodes codes to coordinates. Parameter names, defaults and arithmetic
// are the package's. Memory grows with the number of faces and of adjacent pairs, not with faces
// squared.
//
//   MeshAutoencoder model(MeshAutoencoderConfig{.codebook_size = 16384});
//   MeshLoss loss = model->loss({.vertices = vertices, .faces = faces, .face_edges = pairs});
//   loss.total.backward();
//   torch::Tensor codes = model->tokenize({.vertices = vertices, .faces = faces});
//   DecodedFaces faces = model->decode_from_codes_to_faces(codes);
#pragma once

#include <millrace/training/models/mesh_autoencoder/mesh_autoencoder_config.h>
#include <millrace/training/models/module/random_source.h>
#include <millrace/training/models/quantizers/vector_quantizer.h>

#include <memory>
#include <vector>

#include <torch/nn/module.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

namespace millrace {

class FaceAttentionBlock;
class FaceResnetBlockImpl;
class ResidualQuantizer;
class RowLists;
class SageConvImpl;

// A batch of meshes. Faces and pairs are padded with pad_id.
struct Meshes {
  torch::Tensor vertices;  // float32 [batch, vertices, 3]
  torch::Tensor faces;     // int64 [batch, faces, 3 (or 4)]
  // Adjacent faces, int64 [batch, pairs, 2]; undefined: computed from `faces`.
  torch::Tensor face_edges{};
};

struct MeshLoss {
  torch::Tensor total;
  torch::Tensor reconstruction;
  torch::Tensor commitment;  // [quantizers]; 0 in eval mode
};

struct MeshValidation {
  torch::Tensor reconstruction;  // the reconstruction loss in eval mode
  torch::Tensor accuracy;        // fraction of coordinates that are decoded to the correct bin
};

struct DecodedFaces {
  torch::Tensor coordinates;  // float32 [batch, faces, 3 (or 4), 3]; NaN for padding
  torch::Tensor bins;         // int64, same shape
  torch::Tensor mask;         // bool [batch, faces], false for padding
};

class MeshAutoencoderImpl : public torch::nn::Module {
 public:
  explicit MeshAutoencoderImpl(MeshAutoencoderConfig config);

  const MeshAutoencoderConfig& config() const { return config_; }
  void set_draws(std::shared_ptr<Draws> draws);
  // The codebook, which ranks share; null for lookup-free quantization.
  Codebook codebook();
  // If a batch has more faces than this (padding included), encoder and decoder process it in
  // groups of meshes and run again in the backward pass. Peak memory is that of one group, or of
  // the largest mesh, for about a third more time. Losses and gradients are equal up to rounding.
  void set_faces_at_once(std::int64_t faces) { faces_at_once_ = faces; }

  // Reference path: loss() and codes with operations in the order of the Python package. Needs more
  // time and memory (it keeps the padded batch and a table of vertices by codes), but results are
  // bit-exact. Default: the configuration's `compat`.
  void set_reference(bool reference);

  MeshLoss loss(const Meshes& meshes);
  MeshValidation validate(const Meshes& meshes);
  // Returns int64 [batch, faces * 3 (or 4), quantizers], padded with pad_id. Like validate() and
  // the functions below, runs in eval mode without gradients and restores the mode afterwards.
  torch::Tensor tokenize(const Meshes& meshes);
  // Like tokenize(), for a model that is already in eval mode. Thread-safe.
  torch::Tensor codes_of(const Meshes& meshes);
  // `codes`: as returned by tokenize(), or [batch, all codes]. `mask`: [batch, faces], false for
  // padding; default: faces without pad_id.
  DecodedFaces decode_from_codes_to_faces(const torch::Tensor& codes,
                                          const torch::Tensor& mask = {});
  // Coordinates as in DecodedFaces.
  torch::Tensor reconstruct(const Meshes& meshes);

 private:
  struct Graph;    // a batch as the model uses it
  struct Encoded;  // quantized features and codes of a batch

  Graph graph_of(const Meshes& meshes) const;
  // Features of all faces that are not padding, [faces, corners * dim_codebook].
  torch::Tensor encode(const Graph& graph);
  torch::Tensor encode_some(const Graph& graph, std::int64_t begin, std::int64_t count);
  Encoded quantize(const Graph& graph, const torch::Tensor& features);
  // Maps [batch, faces, corners * dim_codebook] to the inputs of the last layer, for all faces that
  // are not padding.
  torch::Tensor decode(const torch::Tensor& quantized, const torch::Tensor& mask);
  torch::Tensor likeliest(const torch::Tensor& quantized, const torch::Tensor& mask);
  std::int64_t meshes_at_once(const torch::Tensor& mask) const;

  // In mesh_autoencoder_reference.cc: like encode() and decode(), but padded: [batch, faces, ...].
  MeshLoss loss_reference(const Graph& graph);
  torch::Tensor encode_reference(const Graph& graph);
  torch::Tensor decode_reference(const torch::Tensor& quantized, const torch::Tensor& mask);

  MeshAutoencoderConfig config_;
  std::int64_t faces_at_once_ = 8192;
  bool reference_ = false;
  torch::nn::Embedding coor_embed_, angle_embed_, area_embed_, normal_embed_;
  torch::nn::Linear project_in_{nullptr}, project_dim_codebook_{nullptr};
  torch::nn::LayerNorm encoder_norm_{nullptr}, decoder_norm_{nullptr};
  std::vector<std::shared_ptr<SageConvImpl>> convs_;  // the first is init_sage_conv
  std::vector<std::shared_ptr<FaceAttentionBlock>> encoder_attention_, decoder_attention_;
  std::shared_ptr<ResidualQuantizer> quantizer_;
  torch::nn::Conv1d decoder_conv_{nullptr};
  std::vector<std::shared_ptr<FaceResnetBlockImpl>> decoders_;
  torch::nn::Linear to_logits_{nullptr};
  // Parameters of the encoder and of the decoder; the quantizer belongs to neither.
  std::vector<torch::Tensor> encoder_parameters_, decoder_parameters_;
};
TORCH_MODULE(MeshAutoencoder);

}  // namespace millrace
