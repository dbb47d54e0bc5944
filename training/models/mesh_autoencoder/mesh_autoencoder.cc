#include "mesh_attention.h"
#include "mesh_autoencoder_parts.h"
#include "mesh_decoder.h"
#include "mesh_face_edges.h"

#include <millrace/pipeline/base/error.h>
#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/module/module_tensors.h>
#include <millrace/training/models/ops/recompute.h>
#include <millrace/training/models/quantizers/residual_quantizer.h>

#include <algorithm>
#include <limits>

namespace millrace {

namespace nn = torch::nn;

namespace {

// Offsets of the meshes in a list of all unpadded rows, and its length at the end.
std::vector<std::int64_t> begins(const torch::Tensor& mask) {
  const torch::Tensor counts = mask.sum(1).to(torch::kCPU);
  std::vector<std::int64_t> all{0};
  for (std::int64_t i = 0; i < counts.size(0); ++i) {
    all.push_back(all.back() + counts[i].item<std::int64_t>());
  }
  return all;
}

void check_indices(const torch::Tensor& given, std::int64_t end, const char* what) {
  if (given.numel() == 0) return;
  const std::int64_t least = given.min().item<std::int64_t>(),
                     most = given.max().item<std::int64_t>();
  if (least < 0 || most >= end) {
    throw Error(c10::str(what, " ", least < 0 ? least : most, " does not exist: there are ", end));
  }
}

}  // namespace

torch::Tensor MeshAutoencoderImpl::Graph::pairs_of(std::int64_t begin, std::int64_t count) const {
  std::vector<torch::Tensor> shifted;
  for (auto mesh = static_cast<std::size_t>(begin); mesh < static_cast<std::size_t>(begin + count);
       ++mesh) {
    const torch::Tensor own =
        pairs.narrow(0, first_pair[mesh], first_pair[mesh + 1] - first_pair[mesh]);
    check_indices(own, first_face[mesh + 1] - first_face[mesh], "in face_edges, face");
    shifted.push_back(own + (first_face[mesh] - first_face[static_cast<std::size_t>(begin)]));
  }
  return torch::cat(shifted);
}

RowLists MeshAutoencoderImpl::Graph::neighbours(std::int64_t begin, std::int64_t count) const {
  const torch::Tensor all = pairs_of(begin, count);
  const std::int64_t faces_here = first_face[static_cast<std::size_t>(begin + count)] -
                                  first_face[static_cast<std::size_t>(begin)];
  return {all.select(1, 0), all.select(1, 1), faces_here, faces_here};
}

namespace {

using Children = std::vector<std::pair<std::string, ModulePointer>>;

// Adds `depth` blocks to `blocks`; returns the module that holds them.
auto attention_blocks(std::int64_t depth, std::int64_t size, const MeshAutoencoderConfig& config,
                      auto& blocks) {
  Children children;
  for (std::int64_t i = 0; i < depth; ++i) {
    blocks.push_back(std::make_shared<FaceAttentionBlock>(size, config));
    children.emplace_back(std::to_string(i), blocks.back());
  }
  return named(children);
}

}  // namespace

MeshAutoencoderImpl::MeshAutoencoderImpl(MeshAutoencoderConfig config)
    : config_(std::move(config)),
      coor_embed_(config_.num_discrete_coors, config_.dim_coor_embed),
      angle_embed_(config_.num_discrete_angle, config_.dim_angle_embed),
      area_embed_(config_.num_discrete_area, config_.dim_area_embed),
      normal_embed_(config_.num_discrete_normals, config_.dim_normal_embed) {
  config_.check();
  const auto& c = config_;
  register_module("coor_embed", coor_embed_);
  register_module("angle_embed", angle_embed_);
  register_module("area_embed", area_embed_);
  register_module("normal_embed", normal_embed_);
  const std::int64_t seen = c.dim_coor_embed * c.coordinates() + c.dim_angle_embed * c.corners() +
                            c.dim_normal_embed * 3 + c.dim_area_embed;
  project_in_ = register_module("project_in", nn::Linear(seen, c.dim_codebook));
  std::int64_t dim = c.dim_codebook;
  Children layers;
  for (const std::int64_t next : c.encoder_dims_through_depth) {
    convs_.push_back(std::make_shared<SageConvImpl>(dim, next, c.sageconv_kwargs));
    if (convs_.size() > 1) layers.emplace_back(std::to_string(convs_.size() - 2), convs_.back());
    dim = next;
  }
  register_module("init_sage_conv", convs_[0]);
  encoder_norm_ = nn::LayerNorm(nn::LayerNormOptions({c.encoder_dims_through_depth[0]}));
  register_module("init_encoder_act_and_norm", named({{"1", encoder_norm_.ptr()}}));
  register_module("encoders", named(layers));
  register_module("encoder_attn_blocks",
                  attention_blocks(c.attn_encoder_depth, dim, c, encoder_attention_));
  const std::int64_t coded = c.dim_codebook * c.corners();
  project_dim_codebook_ = register_module("project_dim_codebook", nn::Linear(dim, coded));
  encoder_parameters_ = parameters();
  quantizer_ = register_module("quantizer", make_residual_quantizer(c));
  set_reference(c.compat);
  const std::size_t before_decoder = parameters().size();
  register_module("decoder_attn_blocks",
                  attention_blocks(c.attn_decoder_depth, coded, c, decoder_attention_));
  dim = c.decoder_dims_through_depth[0];
  decoder_conv_ = nn::Conv1d(nn::Conv1dOptions(coded, dim, c.init_decoder_conv_kernel)
                                 .padding(c.init_decoder_conv_kernel / 2));
  decoder_norm_ = nn::LayerNorm(nn::LayerNormOptions({dim}));
  register_module("init_decoder_conv",
                  named({{"0", decoder_conv_.ptr()}, {"3", decoder_norm_.ptr()}}));
  layers.clear();
  for (std::size_t i = 1; i < c.decoder_dims_through_depth.size(); ++i) {
    const std::int64_t next = c.decoder_dims_through_depth[i];
    decoders_.push_back(std::make_shared<FaceResnetBlockImpl>(dim, next, c.resnet_dropout));
    layers.emplace_back(std::to_string(i - 1), decoders_.back());
    dim = next;
  }
  register_module("decoders", named(layers));
  to_logits_ = nn::Linear(dim, c.num_discrete_coors * c.coordinates());
  register_module("to_coor_logits", named({{"0", to_logits_.ptr()}}));
  decoder_parameters_ = parameters();
  decoder_parameters_.erase(
      decoder_parameters_.begin(),
      decoder_parameters_.begin() + static_cast<std::ptrdiff_t>(before_decoder));
}

void MeshAutoencoderImpl::set_draws(std::shared_ptr<Draws> draws) {
  quantizer_->set_draws(std::move(draws));
}

void MeshAutoencoderImpl::set_reference(bool reference) {
  reference_ = reference;
  quantizer_->set_reference(reference);
}

Codebook MeshAutoencoderImpl::codebook() {
  return quantizer_->codebook();
}

std::int64_t MeshAutoencoderImpl::meshes_at_once(const torch::Tensor& mask) const {
  return std::max<std::int64_t>(faces_at_once_ / std::max<std::int64_t>(mask.size(1), 1), 1);
}

MeshAutoencoderImpl::Graph MeshAutoencoderImpl::graph_of(const Meshes& meshes) const {
  const torch::Tensor& faces = meshes.faces;
  if (faces.dim() != 3 || faces.size(2) != config_.corners() || meshes.vertices.dim() != 3 ||
      meshes.vertices.size(2) != 3) {
    throw Error(
        c10::str(
            "the mesh autoencoder expects vertices [batch, vertices, 3] and faces [batch, faces, ",
            config_.corners(), "], but got ", meshes.vertices.sizes(), " and ", faces.sizes()))
        .kind(ErrorKind::usage);
  }
  const torch::Tensor mask = (faces != config_.pad_id).all(-1);
  const torch::Tensor edges =
      meshes.face_edges.defined() ? meshes.face_edges : find_face_edges(faces, config_.pad_id);
  const torch::Tensor edge_mask = (edges != config_.pad_id).all(-1);
  Graph graph{.faces = faces,
              .mask = mask,
              .pairs = edges.index({edge_mask}),
              .first_face = begins(mask),
              .first_pair = begins(edge_mask),
              .features = {}};
  const torch::Tensor valid = faces.index({mask});  // [faces, corners]
  check_indices(valid, meshes.vertices.size(1), "vertex");
  const torch::Tensor mesh = mask.nonzero().select(1, 0).unsqueeze(-1) * meshes.vertices.size(1);
  const torch::Tensor corners = meshes.vertices.flatten(0, 1).index({valid + mesh});
  graph.features = face_features(corners, config_);
  return graph;
}

torch::Tensor MeshAutoencoderImpl::encode(const Graph& graph) {
  // The mask only tells in_groups() which meshes belong to a group. It gets no gradient.
  return in_groups(
      [this, graph](const torch::Tensor& rows, std::int64_t begin) {
        return encode_some(graph, begin, rows.size(0));
      },
      graph.mask, meshes_at_once(graph.mask), encoder_parameters_);
}

// Returns [faces without padding, corners * dim_codebook].
torch::Tensor MeshAutoencoderImpl::encode_some(const Graph& graph, std::int64_t begin,
                                               std::int64_t count) {
  auto embedded = [&](nn::Embedding& table, const torch::Tensor& bins) {
    return torch::embedding(table->weight, graph.rows(bins, begin, count)).flatten(1);
  };
  torch::Tensor x = torch::cat(
      {embedded(coor_embed_, graph.features.coordinates),
       embedded(angle_embed_, graph.features.angles), embedded(area_embed_, graph.features.area),
       embedded(normal_embed_, graph.features.normals)},
      1);
  x = project(project_in_, x);
  const RowLists neighbours = graph.neighbours(begin, count);
  for (std::size_t i = 0; i < convs_.size(); ++i) {
    x = convs_[i]->forward(x, neighbours);
    if (i == 0) x = encoder_norm_->forward(torch::silu(x));
  }
  if (!encoder_attention_.empty()) {
    const torch::Tensor mask = graph.mask.narrow(0, begin, count);
    const torch::Tensor places = mask.flatten().nonzero().squeeze(-1);
    torch::Tensor padded =
        torch::zeros({mask.numel(), x.size(1)}, x.options()).index_copy(0, places, x);
    padded = padded.unflatten(0, mask.sizes());
    for (auto& block : encoder_attention_) padded = block->forward(padded, mask);
    x = padded.flatten(0, 1).index_select(0, places);
  }
  return project(project_dim_codebook_, x);
}

MeshAutoencoderImpl::Encoded MeshAutoencoderImpl::quantize(const Graph& graph,
                                                           const torch::Tensor& features) {
  const std::int64_t batch = graph.faces.size(0), corners = config_.corners();
  // One slot more than there are vertices: the corners of padding faces go there.
  const std::int64_t places = std::max<std::int64_t>(graph.faces.max().item<std::int64_t>(), 0) + 2;
  const torch::Tensor mesh =
      torch::arange(batch, graph.faces.options()).view({batch, 1, 1}) * places;
  const torch::Tensor vertex =
      graph.faces.masked_fill(graph.mask.logical_not().unsqueeze(-1), places - 1) + mesh;
  const torch::Tensor to = vertex.index({graph.mask}).flatten();
  const RowLists faces_of_vertices(torch::arange(to.size(0), to.options()), to, to.size(0),
                                   batch * places);
  const torch::Tensor averaged = faces_of_vertices.mean(features.reshape({to.size(0), -1}), 1e-5)
                                     .unflatten(0, {batch, places});
  torch::Tensor counted;
  if (config_.compat) {
    counted = torch::ones({batch, places}, graph.mask.options());
    counted.select(1, places - 1).fill_(false);
  } else {
    counted = (faces_of_vertices.counts() > 0).unflatten(0, {batch, places});
  }
  const ResidualCodes quantized = quantizer_->forward(averaged, counted);
  const torch::Tensor at = vertex.flatten(1);  // [batch, faces * corners]
  const torch::Tensor absent = graph.mask.logical_not().repeat_interleave(corners, 1).unsqueeze(-1);
  return {.features = torch::embedding(quantized.features.flatten(0, 1), at)
                          .unflatten(1, {-1, corners})
                          .flatten(2),
          .codes = quantized.indices.flatten(0, 1).index({at}).masked_fill(absent, config_.pad_id),
          .losses = quantized.losses};
}

torch::Tensor MeshAutoencoderImpl::decode(const torch::Tensor& quantized,
                                          const torch::Tensor& mask) {
  torch::Tensor x = quantized;
  for (auto& block : decoder_attention_) x = block->forward(x, mask);
  const std::int64_t reach = std::max<std::int64_t>(config_.init_decoder_conv_kernel / 2, 1);
  const PackedMeshes packed = PackedMeshes::of(mask, reach);
  if (packed.defined()) {
    const std::int64_t rows = packed.is_face.size(-1);
    x = torch::zeros({rows, x.size(-1)}, x.options())
            .index_copy(0, packed.places, x.index({mask}))
            .unsqueeze(0);
  }
  x = torch::silu(decoder_conv_->forward(x.transpose(1, 2)));
  x = decoder_norm_->forward(x.transpose(1, 2)).transpose(1, 2);
  for (auto& block : decoders_) x = block->forward(x, packed);
  x = x.transpose(1, 2).flatten(0, 1);
  return packed.defined() ? x.index_select(0, packed.places) : x;
}

MeshLoss MeshAutoencoderImpl::loss(const Meshes& meshes) {
  const Graph graph = graph_of(meshes);
  if (reference_) return loss_reference(graph);
  const Encoded encoded = quantize(graph, encode(graph));
  const torch::Tensor sums = in_groups(
      [this, graph](const torch::Tensor& rows, std::int64_t begin) {
        const torch::Tensor mask = graph.mask.narrow(0, begin, rows.size(0));
        const torch::Tensor bins = graph.rows(graph.features.coordinates, begin, rows.size(0));
        return coordinate_loss(decode(rows, mask), to_logits_->weight, to_logits_->bias, bins,
                               config_)
            .unsqueeze(0);
      },
      encoded.features, meshes_at_once(graph.mask), decoder_parameters_);
  MeshLoss loss{.total = {},
                .reconstruction = sums.sum() / graph.features.coordinates.numel(),
                .commitment = encoded.losses};
  loss.total = loss.reconstruction + loss.commitment.sum() * config_.commit_loss_weight;
  return loss;
}

namespace {

// RAII guard: eval mode and no gradients during its lifetime.
class Inference {
 public:
  explicit Inference(nn::Module& module) : module_(module), was_training_(module.is_training()) {
    module_.eval();
  }
  ~Inference() { module_.train(was_training_); }
  Inference(const Inference&) = delete;
  Inference& operator=(const Inference&) = delete;

 private:
  nn::Module& module_;
  bool was_training_;
  torch::NoGradGuard no_grad_;
};

}  // namespace

MeshValidation MeshAutoencoderImpl::validate(const Meshes& meshes) {
  const Inference inference(*this);
  const Graph graph = graph_of(meshes);
  const Encoded encoded = quantize(graph, encode(graph));
  const torch::Tensor sums =
      in_groups(
          [&](const torch::Tensor& rows, std::int64_t begin) {
            const torch::Tensor hidden = decode(rows, graph.mask.narrow(0, begin, rows.size(0)));
            const torch::Tensor bins = graph.rows(graph.features.coordinates, begin, rows.size(0));
            const torch::Tensor loss =
                coordinate_loss(hidden, to_logits_->weight, to_logits_->bias, bins, config_);
            const torch::Tensor found =
                likeliest_bins(hidden, to_logits_->weight, to_logits_->bias, config_);
            return torch::stack({loss, (found == bins).sum().to(loss.scalar_type())}).unsqueeze(0);
          },
          encoded.features, meshes_at_once(graph.mask), {})
          .sum(0) /
      graph.features.coordinates.numel();
  return {.reconstruction = sums[0], .accuracy = sums[1]};
}

torch::Tensor MeshAutoencoderImpl::tokenize(const Meshes& meshes) {
  const Inference inference(*this);
  return codes_of(meshes);
}

torch::Tensor MeshAutoencoderImpl::codes_of(const Meshes& meshes) {
  const Graph graph = graph_of(meshes);
  if (reference_) return quantize(graph, encode_reference(graph).index({graph.mask})).codes;
  return quantize(graph, encode(graph)).codes;
}

// Bins of all faces that are not padding, [faces, coordinates].
torch::Tensor MeshAutoencoderImpl::likeliest(const torch::Tensor& quantized,
                                             const torch::Tensor& mask) {
  return in_groups(
      [&](const torch::Tensor& rows, std::int64_t begin) {
        return likeliest_bins(decode(rows, mask.narrow(0, begin, rows.size(0))), to_logits_->weight,
                              to_logits_->bias, config_);
      },
      quantized, meshes_at_once(mask), {});
}

DecodedFaces MeshAutoencoderImpl::decode_from_codes_to_faces(const torch::Tensor& codes,
                                                             const torch::Tensor& mask) {
  const Inference inference(*this);
  const std::int64_t corners = config_.corners(), quantizers = config_.num_quantizers;
  const torch::Tensor flat = codes.flatten(1);
  if (flat.size(1) % (corners * quantizers) != 0) {
    throw Error(c10::str(flat.size(1), " codes are not a whole number of faces: each face has ",
                         corners * quantizers))
        .kind(ErrorKind::usage);
  }
  DecodedFaces faces;
  faces.mask = mask.defined()
                   ? mask
                   : (flat != config_.pad_id).unflatten(1, {-1, corners * quantizers}).all(-1);
  const torch::Tensor quantized = quantizer_->decode(flat.unflatten(1, {-1, quantizers}))
                                      .unflatten(1, {-1, corners})
                                      .flatten(2);
  const torch::Tensor bins = likeliest(quantized, faces.mask);
  faces.bins =
      torch::zeros({faces.mask.size(0), faces.mask.size(1), config_.coordinates()}, bins.options());
  faces.bins.index_put_({faces.mask}, bins);
  faces.bins = faces.bins.unflatten(-1, {corners, 3});
  const torch::Tensor absent = faces.mask.logical_not().unsqueeze(-1).unsqueeze(-1);
  faces.coordinates = undiscretize(faces.bins, config_)
                          .masked_fill(absent, std::numeric_limits<float>::quiet_NaN());
  return faces;
}

torch::Tensor MeshAutoencoderImpl::reconstruct(const Meshes& meshes) {
  return decode_from_codes_to_faces(tokenize(meshes), (meshes.faces != config_.pad_id).all(-1))
      .coordinates;
}

}  // namespace millrace
