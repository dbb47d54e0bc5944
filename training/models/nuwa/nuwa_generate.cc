// Autoregressive generation of NUWA's video codes, with classifier-free guidance.
#include "nuwa_layers.h"

#include <millrace/pipeline/base/error.h>
#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/module/eval_mode.h>
#include <millrace/training/models/nuwa/nuwa.h>
#include <millrace/training/models/quantizers/quantizer.h>

#include <algorithm>
#include <limits>

#include <c10/util/StringUtil.h>

namespace millrace {

// Computes the logits of the next code. Guidance needs two passes: one sees the text, the other
// does not. (The package feeds the second pass with the first pass's outputs instead of the codes;
// `compat` reproduces that.)
class NuwaImpl::Generation {
 public:
  Generation(NuwaImpl& model, const torch::Tensor& text, const NuwaGenerateOptions& options)
      : model_(model), options_(options), batch_(text.size(0)), guided_(options.cond_scale != 1) {
    const torch::Tensor mask = text != 0;
    with_text_.text = without_text_.text = model.embed_text(text, mask);
    with_text_.text_mask = mask;
    without_text_.text_mask = torch::zeros_like(mask);
  }

  // Logits for the next code. `codes`: all codes so far, [batch, codes].
  torch::Tensor next(const torch::Tensor& codes) {
    const torch::Tensor window = last_frames(codes);
    return options_.cached ? next_cached(window) : next_recomputed(window);
  }

 private:
  // If there are more frames than the model has positions, drops the oldest frames.
  torch::Tensor last_frames(const torch::Tensor& codes) {
    const std::int64_t frame = model_.config_.tokens_per_frame();
    const std::int64_t most = frame * model_.config_.max_video_frames, count = codes.size(1);
    if (count <= most) return codes;
    const std::int64_t dropped = (count - most + frame - 1) / frame * frame;
    if (dropped != dropped_) {  // all positions have moved, so the caches are invalid
      dropped_ = dropped;
      cached_ = 0;
      cache_with_text_.clear();
      cache_without_text_.clear();
    }
    return codes.narrow(1, dropped, count - dropped);
  }

  torch::Tensor next_recomputed(const torch::Tensor& codes) {
    torch::Tensor x = model_.start(batch_);
    if (codes.size(1) > 0) x = torch::cat({x, model_.embed_codes(codes, 0)}, 1);
    auto run = [&](const torch::Tensor& input, const NuwaContext& context) {
      return model_.video_transformer_->forward(input, context);
    };
    const torch::Tensor out = run(x, with_text_);
    if (!guided_) return logits(out);
    return guide(logits(out), logits(run(model_.config_.compat ? out : x, without_text_)));
  }

  torch::Tensor next_cached(const torch::Tensor& codes) {
    torch::Tensor result;
    for (; cached_ <= codes.size(1); ++cached_) {
      const torch::Tensor x =
          cached_ == 0 ? model_.start(batch_)
                       : model_.embed_codes(codes.narrow(1, cached_ - 1, 1), cached_ - 1);
      auto run = [&](const torch::Tensor& input, const NuwaContext& context, auto& caches) {
        return model_.video_transformer_->step(input, cached_, context, caches);
      };
      const torch::Tensor out = run(x, with_text_, cache_with_text_);
      const torch::Tensor other =
          guided_ ? run(model_.config_.compat ? out : x, without_text_, cache_without_text_)
                  : torch::Tensor();
      if (cached_ < codes.size(1)) continue;
      result = guided_ ? guide(logits(out), logits(other)) : logits(out);
    }
    return result;
  }

  // Logits of the last token.
  torch::Tensor logits(const torch::Tensor& out) {
    return project(model_.to_logits_, out.select(1, out.size(1) - 1));
  }
  torch::Tensor guide(const torch::Tensor& with, const torch::Tensor& without) const {
    return without + (with - without) * options_.cond_scale;
  }

  NuwaImpl& model_;
  NuwaGenerateOptions options_;
  std::int64_t batch_;
  bool guided_;
  NuwaContext with_text_, without_text_;
  // Number of dropped codes, and number of positions in the caches.
  std::int64_t dropped_ = 0, cached_ = 0;
  std::vector<NuwaCache> cache_with_text_, cache_without_text_;
};

torch::Tensor NuwaImpl::choose(const torch::Tensor& logits, const NuwaGenerateOptions& options) {
  const auto codes = static_cast<double>(logits.size(-1));
  const auto kept =
      std::max<std::int64_t>(static_cast<std::int64_t>((1 - options.filter_thres) * codes), 1);
  const auto [values, places] = logits.topk(kept);
  const torch::Tensor left =
      torch::full_like(logits, -std::numeric_limits<float>::infinity()).scatter(1, places, values);
  constexpr double least = 1e-20;
  const torch::Tensor drawn = draws_->uniform(logits.sizes()).to(logits.device());
  const torch::Tensor noise = -(-drawn.clamp_min(least).log()).clamp_min(least).log();
  return (left / options.temperature + noise).argmax(-1, true);
}

torch::Tensor NuwaImpl::generate_codes(const torch::Tensor& text,
                                       const NuwaGenerateOptions& options) {
  if (options.temperature <= 0 || options.num_frames < 0) {
    throw Error(c10::str("temperature must be above 0 and num_frames at least 0, but they are ",
                         options.temperature, " and ", options.num_frames))
        .kind(ErrorKind::usage);
  }
  const torch::NoGradGuard no_grad;
  const EvalMode eval(*this);
  const std::int64_t side = config_.vae.fmap_size();
  const std::int64_t frames =
      options.num_frames > 0 ? options.num_frames : config_.max_video_frames;
  torch::Tensor codes = torch::empty({text.size(0), 0}, text.options().dtype(torch::kInt64));
  Generation generation(*this, text, options);
  while (codes.size(1) < frames * side * side) {
    codes = torch::cat({codes, choose(generation.next(codes), options)}, 1);
  }
  return codes.unflatten(1, {frames, side, side});
}

torch::Tensor NuwaImpl::generate(const torch::Tensor& text, const NuwaGenerateOptions& options) {
  return vae_->codebook_indices_to_video(generate_codes(text, options),
                                         options.decode_max_batchsize);
}

}  // namespace millrace
