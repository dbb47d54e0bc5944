// The autoencoder of MeshGPT, as meshgpt-pytorch 1.2.2 has it: triangle meshes to codes, several
// for each vertex, and back to coordinates. Parameter names, defaults and arithmetic are the
// package's; memory grows with faces and the pairs that touch, never with faces times faces.
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

// Meshes of a batch; shorter ones are filled up, faces and pairs with pad_id.
struct Meshes {
  torch::Tensor vertices;      // float32 [batch, vertices, 3]
  torch::Tensor faces;         // int64 [batch, faces, 3 (or 4)]
  torch::Tensor face_edges{};  // int64 [batch, pairs, 2]; undefined: found here
};

struct MeshLoss {
  torch::Tensor total;
  torch::Tensor reconstruction;
  torch::Tensor commitment;  // [quantizers]; 0 outside training
};

struct MeshValidation {
  torch::Tensor reconstruction;  // the loss, in eval mode
  torch::Tensor accuracy;        // the share of coordinates that come out in their own bin
};

struct DecodedFaces {
  torch::Tensor coordinates;  // float32 [batch, faces, 3 (or 4), 3]; NaN where there is no face
  torch::Tensor bins;         // int64, likewise
  torch::Tensor mask;         // bool [batch, faces]
};

class MeshAutoencoderImpl : public torch::nn::Module {
 public:
  explicit MeshAutoencoderImpl(MeshAutoencoderConfig config);

  const MeshAutoencoderConfig& config() const { return config_; }
  void set_draws(std::shared_ptr<Draws> draws);
  // Of a model with a codebook, which the ranks share; else null.
  Codebook codebook();
  // More faces than this in a batch, with those that fill it up, go through encoder and decoder in
  // groups of meshes, and again in the backward pass: memory is that of one group then, or of the
  // largest mesh, for a third more time. The same losses and gradients but for rounding.
  void set_faces_at_once(std::int64_t faces) { faces_at_once_ = faces; }

  // Python's own order of operations in loss() and in codes: more work and memory (all of a batch
  // is filled up, and there is a table of vertices by codes), but the same numbers to the last bit.
  // With compat unless told.
  void set_reference(bool reference);

  MeshLoss loss(const Meshes& meshes);
  MeshValidation validate(const Meshes& meshes);
  // int64 [batch, faces * 3 (or 4), quantizers], filled up with pad_id. In eval mode and without
  // gradients; the mode is put back: in validate() too, and below.
  torch::Tensor tokenize(const Meshes& meshes);
  // The same of a model that is in eval mode already; on any number of threads at once.
  torch::Tensor codes_of(const Meshes& meshes);
  // `codes`: as tokenize() gives them, or flat for each mesh; `mask`: which faces there are, unless
  // pad_id tells.
  DecodedFaces decode_from_codes_to_faces(const torch::Tensor& codes,
                                          const torch::Tensor& mask = {});
  // Coordinates as in DecodedFaces.
  torch::Tensor reconstruct(const Meshes& meshes);

 private:
  struct Graph;    // what of a batch the model looks at
  struct Encoded;  // faces and codes of a batch

  Graph graph_of(const Meshes& meshes) const;
  // Features of all faces, padded: [batch, faces, corners * dim_codebook].
  torch::Tensor encode(const Graph& graph);
  torch::Tensor encode_some(const Graph& graph, std::int64_t begin, std::int64_t count);
  Encoded quantize(const Graph& graph, const torch::Tensor& features);
  // [batch, faces, corners * dim_codebook] to what the last layer sees of each face that is there.
  torch::Tensor decode(const torch::Tensor& quantized, const torch::Tensor& mask);
  torch::Tensor likeliest(const torch::Tensor& quantized, const torch::Tensor& mask);
  std::int64_t meshes_at_once(const torch::Tensor& mask) const;

  // In mesh_autoencoder_reference.cc: as encode() and decode(), but padded: [batch, faces, ...].
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
  // What the encoder and the decoder have; the rest is between them.
  std::vector<torch::Tensor> encoder_parameters_, decoder_parameters_;
};
TORCH_MODULE(MeshAutoencoder);

}  // namespace millrace
