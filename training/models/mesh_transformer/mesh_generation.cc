// Autoregressive generation of meshes.
#include "mesh_transformer_parts.h"

#include <millrace/pipeline/base/error.h>
#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/mesh_transformer/mesh_transformer.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <ATen/CPUGeneratorImpl.h>
#include <c10/util/StringUtil.h>

namespace millrace {

namespace {

constexpr double never = -std::numeric_limits<double>::infinity();

torch::Tensor keep_top_k(const torch::Tensor& logits, const MeshGenerateOptions& options) {
  const std::int64_t all = logits.size(-1);
  std::int64_t k = options.k;
  if (k == 0) {
    k = static_cast<std::int64_t>(std::ceil(options.top_k_share * static_cast<double>(all)));
  }
  const auto [values, places] = logits.topk(std::clamp<std::int64_t>(k, 1, all));
  return torch::full_like(logits, never).scatter(1, places, values);
}

// Top-p: keeps the most likely codes, up to and including the one that exceeds the threshold.
torch::Tensor keep_top_p(const torch::Tensor& logits, double threshold) {
  const auto [sorted, places] = logits.sort(-1, /*descending=*/true);
  const torch::Tensor sums = sorted.softmax(-1).cumsum(-1);
  const torch::Tensor beyond = torch::pad(sums > threshold, {1, -1});
  const torch::Tensor kept = sorted.masked_fill(beyond, never);
  return kept.scatter(1, places, kept);
}

torch::Tensor sample_code(const torch::Tensor& logits, const MeshGenerateOptions& options,
                          std::optional<at::Generator>& generator) {
  torch::Tensor left = logits;
  if (options.filter == CodeFilter::top_k) left = keep_top_k(logits, options);
  if (options.filter == CodeFilter::top_p) left = keep_top_p(logits, options.top_p);
  if (options.temperature == 0) return left.argmax(-1, /*keepdim=*/true);
  return (left / options.temperature).softmax(-1).multinomial(1, false, generator);
}

// RAII guard: eval mode; restores the mode.
class InEvalMode {
 public:
  explicit InEvalMode(torch::nn::Module& model)
      : model_(model), was_training_(model.is_training()) {
    model_.eval();
  }
  ~InEvalMode() { model_.train(was_training_); }
  InEvalMode(const InEvalMode&) = delete;
  InEvalMode& operator=(const InEvalMode&) = delete;

 private:
  torch::nn::Module& model_;
  bool was_training_;
};

void check_options(const MeshGenerateOptions& options) {
  auto refuse = [](const std::string& why) { throw Error(why).kind(ErrorKind::usage); };
  if (options.temperature < 0) {
    refuse(c10::str("temperature must be at least 0, but is ", options.temperature));
  }
  if (options.cond_scale < 1) {
    refuse(c10::str("cond_scale must be at least 1, but is ", options.cond_scale));
  }
  if (options.k < 0 || options.top_k_share <= 0 || options.top_k_share > 1 || options.top_p <= 0 ||
      options.top_p > 1) {
    refuse("top_k_share and top_p must be above 0 and at most 1, and k at least 0");
  }
}

}  // namespace

// Logits for the next code, [batch, codebook_size + 1]. Processes the whole prompt and fills the
// caches.
torch::Tensor MeshTransformerImpl::first_logits(const torch::Tensor& codes, const Text& text,
                                                State& state) {
  const torch::Tensor fine = fine_tokens(codes, text, &state);
  const std::int64_t last_face = codes.size(1) / config_.codes_of_face() * config_.codes_of_face();
  const torch::Tensor made = fine_decoder_->forward(fine.slice(1, last_face), {}, &state.fine);
  return to_logits_->forward(made.select(1, -1));
}

// Logits for the next code. Processes one code; the caches hold the codes before it.
torch::Tensor MeshTransformerImpl::next_logits(const torch::Tensor& codes, const Text& text,
                                               State& state) {
  const std::int64_t length = codes.size(1), each = config_.codes_of_face();
  torch::Tensor token;
  if (length % each == 0) {
    token = face_tokens(embedded(codes.slice(1, length - each), length - each));
    if (coarse_gateloop_) token = coarse_gateloop_->forward(token, &state.coarse_loops);
    token = decoder_->forward(token, text.context, &state.coarse);
    state.fine.clear();
  } else {
    token = embedded(codes.slice(1, length - 1), length - 1);
  }
  if (fine_gateloop_) token = fine_gateloop_->forward(token, &state.fine_loops);
  return to_logits_->forward(fine_decoder_->forward(token, {}, &state.fine).select(1, -1));
}

torch::Tensor MeshTransformerImpl::last_logits(const torch::Tensor& codes, const Text& text,
                                               State* state) {
  if (state == nullptr) return all_logits(codes, text).select(1, -1);
  if (state->begun) return next_logits(codes, text, *state);
  state->begun = true;
  return first_logits(codes, text, *state);
}

torch::Tensor MeshTransformerImpl::generate(const MeshGenerateOptions& options) {
  check_options(options);
  torch::NoGradGuard no_grad;
  const InEvalMode in_eval_mode(*this);
  torch::Tensor codes = options.prompt;
  const torch::Device device = sos_token_.device();
  if (codes.defined()) {
    codes = flattened(codes).to(device, torch::kInt64);
  } else {
    const std::int64_t texts = options.text_embeds.defined() ? options.text_embeds.size(0) : 1;
    const std::int64_t rows = options.batch_size > 0 ? options.batch_size : texts;
    codes = torch::empty({rows, 0}, torch::dtype(torch::kInt64).device(device));
  }
  const std::int64_t limit = options.max_seq_len > 0
                                 ? std::min(options.max_seq_len, config_.max_seq_len)
                                 : config_.max_seq_len;
  const bool guided = options.cond_scale != 1 && config_.condition_on_text;
  const Text text = text_of(options.text_embeds, codes.size(0), 0);
  const Text no_text = guided ? text_of(options.text_embeds, codes.size(0), 1) : Text{};
  std::optional<at::Generator> generator;
  if (options.seed) generator = at::detail::createCPUGenerator(*options.seed);
  State with, without;
  for (std::int64_t length = codes.size(1); length < limit; ++length) {
    torch::Tensor logits = last_logits(codes, text, options.cache_kv ? &with : nullptr);
    if (guided) {
      const torch::Tensor null = last_logits(codes, no_text, options.cache_kv ? &without : nullptr);
      logits = null + (logits - null) * options.cond_scale;
    }
    // A mesh can end only after a whole face.
    if (length == 0 || length % config_.codes_of_face() != 0) {
      logits.select(1, -1).fill_(std::numeric_limits<float>::lowest());
    }
    codes = torch::cat({codes, sample_code(logits, options, generator)}, 1);
    if (codes.eq(config_.end_of_mesh()).any(1).all().item<bool>()) break;
    if (options.on_code && !options.on_code(length + 1)) break;
  }
  const torch::Tensor ended = codes.eq(config_.end_of_mesh()).cumsum(1) >= 1;
  codes = codes.masked_fill(ended, config_.pad_id);
  return codes.slice(1, 0, codes.size(1) / config_.num_quantizers * config_.num_quantizers);
}

}  // namespace millrace
