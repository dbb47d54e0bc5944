#include "nuwa_layers.h"

#include <millrace/pipeline/base/error.h>
#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/module/module_tensors.h>
#include <millrace/training/models/nuwa/nuwa.h>
#include <millrace/training/models/quantizers/quantizer.h>

#include <algorithm>

#include <c10/util/StringUtil.h>

namespace millrace {

namespace nn = torch::nn;

namespace {

// An embedding registered as `name`.embed, as in the Python package.
nn::Embedding table(nn::Module& module, const char* name, std::int64_t count, std::int64_t dim) {
  auto outer = module.register_module(name, std::make_shared<nn::Module>());
  return outer->register_module("embed", nn::Embedding(count, dim));
}

NuwaTransformerOptions text_options(const NuwaConfig& c) {
  return {.dim = c.dim,
          .depth = c.text_enc_depth,
          .heads = c.text_enc_heads,
          .dim_head = c.text_enc_dim_head,
          .attn_dropout = c.attn_dropout,
          .ff_dropout = c.ff_dropout,
          .reversible = c.enc_reversible};
}

NuwaTransformerOptions video_options(const NuwaConfig& c) {
  return {.dim = c.dim,
          .depth = c.dec_depth,
          .heads = c.dec_heads,
          .dim_head = c.dec_dim_head,
          .attn_dropout = c.attn_dropout,
          .ff_dropout = c.ff_dropout,
          .reversible = c.dec_reversible,
          .video = true,
          .video_shape = c.video_shape(),
          .kernel = c.sparse_3dna_kernel_size,
          .dilations = c.dilations(),
          .rel_pos_bias = c.sparse_3dna_rel_pos_bias,
          .shift_video_tokens = c.shift_video_tokens,
          .frames_at_once = c.sparse_3dna_query_num_frames_chunk};
}

// Scales the gradient of x by `fraction`, so that embeddings learn more slowly than the rest.
torch::Tensor scale_gradient(const torch::Tensor& x, double fraction) {
  return x * fraction + x.detach() * (1 - fraction);
}

}  // namespace

NuwaImpl::NuwaImpl(NuwaConfig config) : config_(std::move(config)) {
  config_.check();
  const std::int64_t dim = config_.dim;
  config_.vae.use_vgg_and_gan = false;  // the package's copy of the VAE has no discriminator either
  video_bos_ = register_parameter("video_bos", torch::randn({dim}));
  vae_ = register_module("vae", NuwaVqgan(config_.vae));
  text_embedding_ = table(*this, "text_embedding", config_.text_num_tokens, dim);
  if (config_.text_rotary_pos_emb) {
    const auto rotary_dim =
        static_cast<double>(std::min<std::int64_t>(32, config_.text_enc_dim_head));
    auto rotary = register_module("text_rotary_pos_emb", std::make_shared<nn::Module>());
    inv_freq_ = rotary->register_buffer(
        "inv_freq",
        1.0 / torch::pow(10000, torch::arange(0, rotary_dim, 2, torch::kFloat32) / rotary_dim));
  } else {
    text_positions_ = table(*this, "text_abs_pos_emb", config_.text_max_seq_len, dim);
  }
  text_transformer_ = register_module("text_transformer",
                                      std::make_shared<NuwaTransformerImpl>(text_options(config_)));
  image_embedding_ = table(*this, "image_embedding", config_.vae.vq.codebook_size, dim);
  video_positions_ = register_module(
      "video_pos_emb", std::make_shared<AxialPositionsImpl>(dim, config_.video_shape()));
  video_transformer_ = register_module(
      "video_transformer", std::make_shared<NuwaTransformerImpl>(video_options(config_)));
  to_logits_ = register_module(
      "to_logits", nn::Linear(nn::LinearOptions(dim, config_.vae.vq.codebook_size).bias(false)));
}

std::vector<torch::Tensor> NuwaImpl::trained_parameters() const {
  std::vector<torch::Tensor> trained;
  for (const auto& [name, parameter] : parameter_tensors(*this)) {
    if (!name.starts_with("vae.")) trained.push_back(parameter);
  }
  return trained;
}

void NuwaImpl::check_text(const torch::Tensor& text) const {
  auto refuse = [](const std::string& why) { throw Error(why).kind(ErrorKind::usage); };
  if (text.dim() != 2) {
    refuse(c10::str("NUWA expects tokens of shape [batch, words], but got ", text.sizes()));
  }
  if (text.size(1) > config_.text_max_seq_len) {
    refuse(c10::str("a text has ", text.size(1), " tokens, more than text_max_seq_len, which is ",
                    config_.text_max_seq_len));
  }
}

torch::Tensor NuwaImpl::embed_text(const torch::Tensor& text, const torch::Tensor& mask) {
  check_text(text);
  torch::Tensor tokens = text_embedding_->forward(text);
  const double fraction = config_.embed_gradient_frac;
  if (is_training() && fraction < 1) tokens = scale_gradient(tokens, fraction);
  const torch::Tensor places = torch::arange(text.size(1), text.options());
  NuwaContext context{.mask = mask, .rotary = {}, .text = {}, .text_mask = {}};
  if (text_positions_) {
    tokens = tokens + text_positions_->forward(places).unsqueeze(0);
  } else {
    const torch::Tensor angles = torch::outer(places.to(inv_freq_.scalar_type()), inv_freq_);
    context.rotary = torch::cat({angles, angles}, -1);
  }
  return text_transformer_->forward(tokens, context);
}

torch::Tensor NuwaImpl::codes_of(const torch::Tensor& video) {
  if (!video.is_floating_point()) return video.to(torch::kInt64).flatten(1);
  return vae_->get_video_indices(video).flatten(1);
}

torch::Tensor NuwaImpl::positions() const {
  return video_positions_->forward();
}

torch::Tensor NuwaImpl::start(std::int64_t batch) const {
  return video_bos_.expand({batch, 1, -1});
}

torch::Tensor NuwaImpl::embed_codes(const torch::Tensor& codes, std::int64_t first_place) const {
  torch::Tensor x = torch::embedding(image_embedding_->weight, codes);
  const double fraction = config_.embed_gradient_frac;
  if (is_training() && fraction < 1) x = scale_gradient(x, fraction);
  return positions().narrow(0, first_place, codes.size(1)) + x;
}

torch::Tensor NuwaImpl::logits(const torch::Tensor& text, const torch::Tensor& codes,
                               const NuwaLossOptions& options) {
  const std::int64_t batch = text.size(0),
                     longest = config_.max_video_frames * config_.tokens_per_frame();
  if (codes.dim() != 2 || codes.size(0) != batch || codes.size(1) < 1 || codes.size(1) > longest) {
    throw Error(c10::str("NUWA expects 1 to ", longest, " codes (", config_.max_video_frames,
                         " frames of ", config_.tokens_per_frame(), ") for each of ", batch,
                         " texts, but got ", codes.sizes()))
        .kind(ErrorKind::usage);
  }
  torch::Tensor mask = text != 0;
  const torch::Tensor words = embed_text(text, mask);
  const torch::Tensor before = codes.narrow(1, 0, codes.size(1) - 1);
  const torch::Tensor x = torch::cat({start(batch), embed_codes(before, 0)}, 1);
  if (is_training() && options.cond_dropout_prob > 0) {
    const torch::Tensor drawn = draws_->uniform({batch}).to(mask.device());
    mask = mask & (drawn >= options.cond_dropout_prob).unsqueeze(1);
  }
  const NuwaContext context{.mask = {}, .rotary = {}, .text = words, .text_mask = mask};
  return project(to_logits_, video_transformer_->forward(x, context));
}

torch::Tensor NuwaImpl::loss(const torch::Tensor& text, const torch::Tensor& video,
                             const NuwaLossOptions& options) {
  const torch::Tensor codes = codes_of(video);
  return nn::functional::cross_entropy(logits(text, codes, options).flatten(0, 1), codes.flatten());
}

}  // namespace millrace
