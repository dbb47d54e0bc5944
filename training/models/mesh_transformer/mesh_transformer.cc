#include "decoder_layers.h"
#include "mesh_transformer_parts.h"
#include "text_encoder.h"

#include <millrace/pipeline/base/error.h>
#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/mesh_transformer/mesh_transformer.h>
#include <millrace/training/models/ops/gate_loop.h>
#include <millrace/training/models/ops/linear_function.h>

#include <algorithm>

#include <c10/util/StringUtil.h>

namespace millrace {

namespace nn = torch::nn;
namespace F = torch::nn::functional;

namespace {

DecoderOptions decoder_options(const MeshTransformerConfig& config, bool fine) {
  DecoderOptions options{.arguments = config.attn_kwargs,
                         .dim = config.dim,
                         .depth = fine ? config.fine_attn_depth : config.attn_depth,
                         .heads = config.attn_heads,
                         .dim_head = config.attn_dim_head,
                         .dropout = config.dropout,
                         .flash = config.flash_attn,
                         .reference = config.compat};
  if (!fine && config.condition_on_text) {
    options.cross_dim = config.dim_text;
    options.cross_num_mem_kv = config.cross_attn_num_mem_kv;
  }
  return options;
}

GateLoopOrder loop_order(const MeshTransformerConfig& config, bool heinsen) {
  if (!config.compat) return GateLoopOrder::one_by_one;
  return heinsen ? GateLoopOrder::heinsen : GateLoopOrder::pairs;
}

// For codes `first` to `first` + n - 1: a repeating sequence of `items`, where each item covers
// `each` codes.
torch::Tensor cycle(const torch::Tensor& items, std::int64_t each, std::int64_t first,
                    std::int64_t n) {
  const torch::Tensor at = torch::arange(first, first + n, torch::device(items.device()));
  return items.index_select(0, at.div(each, "floor").remainder(items.size(0)));
}

}  // namespace

MeshTransformerImpl::MeshTransformerImpl(const MeshTransformerConfig& config,
                                         const std::shared_ptr<nn::Module>& autoencoder)
    : config_(config) {
  config_.check();
  const std::int64_t dim = config_.dim;
  sos_token_ = register_parameter("sos_token", torch::randn({dim}));
  quantize_level_embed_ =
      register_parameter("quantize_level_embed", torch::randn({config_.num_quantizers, dim}));
  vertex_embed_ =
      register_parameter("vertex_embed", torch::randn({config_.vertices_of_face(), dim}));
  if (autoencoder) {
    register_module("autoencoder", autoencoder);
    for (torch::Tensor& parameter : autoencoder->parameters()) parameter.requires_grad_(false);
  }
  token_embed_ = register_module("token_embed", nn::Embedding(config_.codebook_size + 1, dim));
  abs_pos_emb_ = register_module("abs_pos_emb", nn::Embedding(config_.max_seq_len, dim));
  if (config_.condition_on_text) {
    // In the package the text model's output passes through this layer before it is cached.
    to_latent_ = nn::Linear(config_.dim_text, config_.dim_text);
    register_module("conditioner", named({{"to_latent_dims", named({{"0", to_latent_.ptr()}})}}));
    to_sos_text_cond_ = register_module("to_sos_text_cond", nn::Linear(config_.dim_text, dim));
  }
  face_projection_ = nn::Linear(config_.codes_of_face() * dim, dim);
  face_norm_ = nn::LayerNorm(nn::LayerNormOptions({dim}));
  register_module("to_face_tokens",
                  named({{"0", face_projection_.ptr()}, {"1", face_norm_.ptr()}}));
  auto gate_loops = [&](const char* name, std::int64_t depth, bool heinsen) {
    if (depth == 0) return std::shared_ptr<GateLoopBlock>();
    return register_module(
        name, std::make_shared<GateLoopBlock>(dim, depth, loop_order(config_, heinsen)));
  };
  coarse_gateloop_ = gate_loops("coarse_gateloop_block", config_.coarse_pre_gateloop_depth,
                                config_.gateloop_use_heinsen);
  decoder_ =
      register_module("decoder", std::make_shared<DecoderLayers>(decoder_options(config_, false)));
  // The package does not pass use_heinsen to the fine block, whose default is true.
  fine_gateloop_ = gate_loops("fine_gateloop_block", config_.fine_pre_gateloop_depth, true);
  fine_decoder_ = register_module("fine_decoder",
                                  std::make_shared<DecoderLayers>(decoder_options(config_, true)));
  to_logits_ = register_module("to_logits", nn::Linear(dim, config_.codebook_size + 1));
  if (config_.text_encoder) {
    text_encoder_ = register_module(
        "text_encoder", std::make_shared<TextEncoder>(*config_.text_encoder, config_.dim_text));
  }
}

MeshTransformerImpl::~MeshTransformerImpl() = default;

std::vector<torch::Tensor> MeshTransformerImpl::trained_parameters() const {
  std::vector<torch::Tensor> trained;
  for (const torch::Tensor& parameter : parameters()) {
    if (parameter.requires_grad()) trained.push_back(parameter);
  }
  return trained;
}

torch::Tensor MeshTransformerImpl::embed_texts(const std::vector<std::string>& texts) {
  if (!text_encoder_) {
    throw Error("this mesh transformer has no text encoder; pass text_embeds instead of texts")
        .kind(ErrorKind::usage);
  }
  const TextEncoder::Encoded encoded = text_encoder_->forward(texts);
  return to_latent_->forward(encoded.embeds) * encoded.mask.unsqueeze(-1);
}

MeshTransformerImpl::Text MeshTransformerImpl::text_of(const torch::Tensor& text_embeds,
                                                       std::int64_t batch, double drop) {
  if (!config_.condition_on_text) {
    if (text_embeds.defined()) {
      throw Error("text_embeds are given, but condition_on_text is false").kind(ErrorKind::usage);
    }
    return {};
  }
  if (!text_embeds.defined()) {
    throw Error("condition_on_text is true, but text_embeds are not given").kind(ErrorKind::usage);
  }
  if (text_embeds.dim() != 3 || text_embeds.size(0) != batch ||
      text_embeds.size(2) != config_.dim_text) {
    throw Error(c10::str("text_embeds must have the shape [", batch, ", words, ", config_.dim_text,
                         "], but have the shape ", text_embeds.sizes()))
        .kind(ErrorKind::usage);
  }
  torch::Tensor mask = text_embeds.ne(0).any(-1);
  if (drop >= 1) {
    mask = torch::zeros_like(mask);
  } else if (drop > 0) {
    mask = mask.logical_and(draws_->uniform({batch, 1}).to(mask.device()) < 1 - drop);
  }
  const torch::Tensor words = mask.sum(1, /*keepdim=*/true);
  const torch::Tensor sum = text_embeds.masked_fill(mask.logical_not().unsqueeze(-1), 0).sum(1);
  return {{text_embeds, mask}, sum / words.clamp_min(1)};
}

torch::Tensor MeshTransformerImpl::embedded(const torch::Tensor& codes, std::int64_t first) const {
  const std::int64_t n = codes.size(1);
  const torch::Tensor tokens =
      torch::embedding(token_embed_->weight, codes.masked_fill(codes == config_.pad_id, 0));
  const torch::Tensor places = abs_pos_emb_->weight.slice(0, first, first + n);
  const torch::Tensor levels = cycle(quantize_level_embed_, 1, first, n);
  const torch::Tensor vertices = cycle(vertex_embed_, config_.num_quantizers, first, n);
  if (config_.compat) return tokens + places + levels + vertices;
  return tokens + (places + levels + vertices);
}

torch::Tensor MeshTransformerImpl::first_token(const Text& text, std::int64_t batch) {
  torch::Tensor token = sos_token_.expand({batch, -1});
  if (to_sos_text_cond_) token = token + to_sos_text_cond_(text.pooled);
  return token.unsqueeze(1);
}

torch::Tensor MeshTransformerImpl::face_tokens(const torch::Tensor& embedded_codes) {
  const torch::Tensor faces = embedded_codes.unflatten(1, {-1, config_.codes_of_face()}).flatten(2);
  const torch::Tensor projected =
      config_.compat ? face_projection_->forward(faces)
                     : linear_product(faces, face_projection_->weight, face_projection_->bias);
  return face_norm_->forward(projected);
}

// The input of the fine decoder, [batch, length + 1, dim]. Each face is one output of the coarse
// decoder, computed from the faces before it, then all codes of the face except the last.
torch::Tensor MeshTransformerImpl::fine_tokens(const torch::Tensor& codes, const Text& text,
                                               State* state) {
  const std::int64_t length = codes.size(1), each = config_.codes_of_face();
  const std::int64_t faces = length / each;
  const torch::Tensor e = embedded(codes, 0);
  torch::Tensor before = first_token(text, codes.size(0));
  if (faces > 0) {
    torch::Tensor coarse = face_tokens(e.slice(1, 0, faces * each));
    if (coarse_gateloop_) {
      coarse = coarse_gateloop_->forward(coarse, state != nullptr ? &state->coarse_loops : nullptr);
    }
    coarse = decoder_->forward(coarse, text.context, state != nullptr ? &state->coarse : nullptr);
    before = torch::cat({before, coarse}, 1);
  }
  const torch::Tensor padded = torch::pad(e, {0, 0, 0, (faces + 1) * each - length});
  const torch::Tensor within = padded.unflatten(1, {faces + 1, each}).slice(2, 0, each - 1);
  const torch::Tensor fine =
      torch::cat({before.unsqueeze(2), within}, 2).flatten(1, 2).slice(1, 0, length + 1);
  if (!fine_gateloop_) return fine;
  return fine_gateloop_->forward(fine, state != nullptr ? &state->fine_loops : nullptr);
}

torch::Tensor MeshTransformerImpl::all_logits(const torch::Tensor& codes, const Text& text) {
  const std::int64_t length = codes.size(1), each = config_.codes_of_face();
  const std::int64_t faces = length / each + 1;
  const torch::Tensor fine = fine_tokens(codes, text, nullptr);
  const torch::Tensor by_face =
      torch::pad(fine, {0, 0, 0, faces * each - length - 1}).reshape({-1, each, config_.dim});
  const torch::Tensor made =
      fine_decoder_->forward(by_face).reshape({-1, faces * each, config_.dim});
  return to_logits_->forward(made.slice(1, 0, length + 1));
}

torch::Tensor MeshTransformerImpl::flattened(const torch::Tensor& codes) const {
  const torch::Tensor flat = codes.dim() > 2 ? codes.flatten(1) : codes;
  if (flat.size(1) > config_.max_seq_len) {
    throw Error(c10::str("a mesh of ", flat.size(1), " codes (",
                         flat.size(1) / config_.codes_of_face(),
                         " faces) is too long; max_seq_len is ", config_.max_seq_len))
        .hint("Remove long meshes, or train with a larger max_seq_len");
  }
  return flat;
}

torch::Tensor MeshTransformerImpl::logits(const torch::Tensor& codes,
                                          const torch::Tensor& text_embeds, double cond_scale) {
  const torch::Tensor flat = flattened(codes);
  const double drop = is_training() ? config_.text_condition_cond_drop_prob : 0;
  const torch::Tensor with = all_logits(flat, text_of(text_embeds, flat.size(0), drop));
  if (cond_scale == 1) return with;
  const torch::Tensor without = all_logits(flat, text_of(text_embeds, flat.size(0), 1));
  return without + (with - without) * cond_scale;
}

torch::Tensor MeshTransformerImpl::loss(const torch::Tensor& codes,
                                        const torch::Tensor& text_embeds) {
  const torch::Tensor flat = flattened(codes);
  const double drop = is_training() ? config_.text_condition_cond_drop_prob : 0;
  const Text text = text_of(text_embeds, flat.size(0), drop);
  const torch::Tensor lengths = flat.eq(config_.pad_id).cumsum(1).eq(0).sum(1);
  if (!config_.compat) return packed_loss(flat, lengths, text);
  torch::Tensor labels = torch::pad(flat, {0, 1});
  labels.scatter_(1, lengths.unsqueeze(1), config_.end_of_mesh());
  const torch::Tensor logits = all_logits(labels.slice(1, 0, -1), text);
  return F::cross_entropy(logits.transpose(1, 2), labels,
                          F::CrossEntropyFuncOptions().ignore_index(config_.pad_id));
}

// Computes the loss without running the fine decoder on padding.
torch::Tensor MeshTransformerImpl::packed_loss(const torch::Tensor& codes,
                                               const torch::Tensor& lengths, const Text& text) {
  const std::int64_t each = config_.codes_of_face();
  const torch::Tensor on_cpu = lengths.to(torch::kCPU);
  const std::int64_t longest = on_cpu.max().item<std::int64_t>();
  const torch::Tensor fine = fine_tokens(codes.slice(1, 0, longest), text, nullptr);
  const std::int64_t faces = longest / each + 1;
  const torch::Tensor by_face =
      torch::pad(fine, {0, 0, 0, faces * each - longest - 1}).reshape({-1, each, config_.dim});
  // Which faces of [rows * faces] have labels, and which of their codes.
  const torch::Tensor at = torch::arange(faces * each).unsqueeze(0);
  const torch::Tensor labelled = at.le(on_cpu.unsqueeze(1)).view({-1, each});
  const torch::Tensor used = labelled.any(1).nonzero().flatten();
  const torch::Tensor picked = labelled.index_select(0, used).flatten().nonzero().flatten();
  auto on_device = [&](const torch::Tensor& t) { return t.to(codes.device()); };
  const torch::Tensor some =
      used.size(0) < by_face.size(0) ? by_face.index_select(0, on_device(used)) : by_face;
  const torch::Tensor made = fine_decoder_->forward(some).flatten(0, 1);
  torch::Tensor labels = torch::pad(codes.slice(1, 0, longest), {0, 1}, "constant",
                                    static_cast<double>(config_.pad_id));
  labels = labels.scatter(1, lengths.unsqueeze(1), config_.end_of_mesh());
  labels = torch::pad(labels, {0, faces * each - longest - 1}).view({-1, each});
  labels = labels.index_select(0, on_device(used)).flatten().index_select(0, on_device(picked));
  // Pads the logits to a multiple of 16: codebook_size + 1 is usually one more than a power of 2,
  // and the aligned product takes half the time. The padding has a bias of -1e30, so it does not
  // change the softmax.
  const std::int64_t more = (16 - to_logits_->weight.size(0) % 16) % 16;
  const torch::Tensor weight = torch::pad(to_logits_->weight, {0, 0, 0, more});
  const torch::Tensor bias = torch::pad(to_logits_->bias, {0, more}, "constant", -1e30);
  const torch::Tensor logits =
      linear_product(made.index_select(0, on_device(picked)), weight, bias);
  return F::cross_entropy(logits, labels);
}

}  // namespace millrace
