// How NUWA tells a video: code by code, with guidance by the text.
#include "nuwa_layers.h"

#include <millrace/pipeline/base/error.h>
#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/module/eval_mode.h>
#include <millrace/training/models/nuwa/nuwa.h>
#include <millrace/training/models/quantizers/quantizer.h>

#include <algorithm>
#include <limits>

namespace millrace {

// The logits of the next code, again and again. With guidance there are two streams: one that sees
// the text, and one that does not. (In the package the second is fed with what the first put out
// instead of with the codes; `compat` does that too.)
class NuwaImpl::Generation {
 public:
  Generation(NuwaImpl& model, const torch::Tensor& text, const NuwaGenerateOptions& options)
      : model_(model), options_(options), batch_(text.size(0)), guided_(options.cond_scale != 1) {
    const torch::Tensor mask = text != 0;
    seeing_.text = blind_.text = model.embed_text(text, mask);
    seeing_.text_mask = mask;
    blind_.text_mask = torch::zeros_like(mask);
  }

  // `codes`: all so far, [batch, codes].
  torch::Tensor next(const torch::Tensor& codes) {
    const torch::Tensor window = last_of(codes);
    return options_.cached ? next_cached(window) : next_anew(window);
  }

 private:
  // More frames than the model has positions for: of earlier ones whole frames fall away.
  torch::Tensor last_of(const torch::Tensor& codes) {
    const std::int64_t frame = model_.config_.tokens_per_frame();
    const std::int64_t most = frame * model_.config_.max_video_frames, count = codes.size(1);
    if (count <= most) return codes;
    const std::int64_t falls_away = (count - most + frame - 1) / frame * frame;
    if (falls_away != fell_away_) {  // every place has moved: nothing that is remembered holds
      fell_away_ = falls_away;
      done_ = 0;
      seen_.clear();
      unseen_.clear();
    }
    return codes.narrow(1, falls_away, count - falls_away);
  }

  torch::Tensor next_anew(const torch::Tensor& codes) {
    torch::Tensor x = model_.start(batch_);
    if (codes.size(1) > 0) x = torch::cat({x, model_.embed_codes(codes, 0)}, 1);
    auto run = [&](const torch::Tensor& input, const NuwaContext& context) {
      return model_.video_transformer_->forward(input, context);
    };
    const torch::Tensor out = run(x, seeing_);
    if (!guided_) return logits(out);
    return guide(logits(out), logits(run(model_.config_.compat ? out : x, blind_)));
  }

  torch::Tensor next_cached(const torch::Tensor& codes) {
    torch::Tensor result;
    for (; done_ <= codes.size(1); ++done_) {
      const torch::Tensor x = done_ == 0
                                  ? model_.start(batch_)
                                  : model_.embed_codes(codes.narrow(1, done_ - 1, 1), done_ - 1);
      auto run = [&](const torch::Tensor& input, const NuwaContext& context, auto& memories) {
        return model_.video_transformer_->step(input, done_, context, memories);
      };
      const torch::Tensor out = run(x, seeing_, seen_);
      const torch::Tensor other =
          guided_ ? run(model_.config_.compat ? out : x, blind_, unseen_) : torch::Tensor();
      if (done_ < codes.size(1)) continue;
      result = guided_ ? guide(logits(out), logits(other)) : logits(out);
    }
    return result;
  }

  // Of the last token.
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
  NuwaContext seeing_, blind_;
  std::int64_t fell_away_ = 0, done_ = 0;  // codes; places that are remembered
  std::vector<NuwaMemory> seen_, unseen_;
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
    throw Error("the temperature must be above 0, and num_frames not below").kind(ErrorKind::usage);
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
