#include <millrace/pipeline/base/error.h>
#include <millrace/pipeline/base/random.h>
#include <millrace/training/checkpoint/tensors.h>
#include <millrace/training/device/tensor.h>
#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/module/module_tensors.h>
#include <millrace/training/models/module/tensor_views.h>
#include <millrace/training/models/nuwa/nuwa_stage.h>

#include <algorithm>
#include <chrono>

namespace millrace {

namespace {

constexpr double gif_frames_per_second = 1 / 0.08;  // as in the package

OptimizerOptions with_order(OptimizerOptions options, bool as_in_python) {
  options.as_in_python = as_in_python;
  return options;
}

// Decodes a row of tokens to text, without its padding.
std::string text_of(const Tokenizer* tokenizer, const torch::Tensor& row) {
  if (tokenizer == nullptr) return "";
  const torch::Tensor words = row.to(torch::kCPU, torch::kInt32).contiguous();
  std::string text;
  const std::span ids(words.const_data_ptr<std::int32_t>(),
                      static_cast<std::size_t>(words.numel()));
  return tokenizer->decode(ids, text).ok() ? text : "";
}

}  // namespace

NuwaStage::NuwaStage(const NuwaConfig& config, const NuwaStageOptions& options)
    : options_(options),
      model_(config),
      optimizer_(model_->trained_parameters(), with_order(options.optimizer, options.compat)) {
  model_->to(options.device);  // in place: the optimizer's parameters stay valid
  model_->set_draws(draws_);
  for (torch::Tensor& parameter : model_->vae()->parameters()) parameter.requires_grad_(false);
}

std::vector<Phase> NuwaStage::phases() {
  return {
      {.loss = "loss",
       .optimizers = {
           {.state = "optim", .optimizer = &optimizer_, .max_grad_norm = options_.max_grad_norm}}}};
}

torch::Tensor NuwaStage::video(const Batch& batch) const {
  const torch::Tensor video = to_tensor(batch[options_.video]);
  return video.is_floating_point() ? video.transpose(1, 2) : video;
}

torch::Tensor NuwaStage::text(const Batch& batch) const {
  return to_tensor(batch[options_.tokens]).to(options_.device, torch::kInt64);
}

Logs NuwaStage::backward(const Batch& batch, const MicroStep& micro) {
  if (!options_.compat) {
    const std::uint64_t key = mix(options_.seed, static_cast<std::uint64_t>(micro.step));
    draws_->reseed(mix(key, static_cast<std::uint64_t>(batch.indices()[0])));
  }
  const torch::Tensor loss =
      model_->loss(text(batch), video(batch), {.cond_dropout_prob = options_.cond_dropout_prob});
  const auto begin = std::chrono::steady_clock::now();
  (loss * micro.scale).backward();
  backward_seconds_ +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return {{"loss", loss.item<double>()}};
}

Logs NuwaStage::validate(const Batch& batch, bool /*average*/) {
  return {{"loss", model_->loss(text(batch), video(batch)).item<double>()}};
}

torch::Tensor NuwaStage::prompts() const {
  std::vector<std::vector<std::int32_t>> ids(options_.prompts.size());
  std::size_t longest = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (!options_.tokenizer) {
      throw Error("NuwaStageOptions::prompts need NuwaStageOptions::tokenizer, but it is null")
          .kind(ErrorKind::usage);
    }
    const Status status = options_.tokenizer->encode(options_.prompts[i], ids[i]);
    if (!status.ok()) throw status.error();
    longest = std::max(longest, ids[i].size());
  }
  const auto most = static_cast<std::size_t>(model_->config().text_max_seq_len);
  torch::Tensor text = torch::zeros(
      {static_cast<std::int64_t>(ids.size()), static_cast<std::int64_t>(std::min(longest, most))},
      torch::kInt64);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    for (std::size_t j = 0; j < std::min(ids[i].size(), most); ++j) {
      text[static_cast<std::int64_t>(i)][static_cast<std::int64_t>(j)] = ids[i][j];
    }
  }
  return text.to(options_.device);
}

Samples NuwaStage::sample(const Batch& batch, std::int64_t step, bool average) {
  if (average) return {};
  const torch::Tensor texts = options_.prompts.empty() ? text(batch).narrow(0, 0, 1) : prompts();
  draws_->reseed(mix(options_.seed, static_cast<std::uint64_t>(step)));
  // [texts, frames, channels, height, width]
  const torch::Tensor clips = model_->generate(texts, options_.generate).clamp(0, 1);
  // Clips of different texts side by side: [frames, height, texts * width, channels]
  const torch::Tensor row = clips.permute({1, 3, 0, 4, 2}).flatten(2, 3);
  Samples samples;
  const std::string name = std::to_string(step);
  samples.pictures.push_back({.name = name, .pixels = to_pixels(row.flatten(0, 1))});
  samples.pictures.push_back(
      {.name = name, .pixels = to_pixels(row), .frames_per_second = gif_frames_per_second});
  for (std::int64_t i = 0; i < texts.size(0); ++i) {
    samples.lines.push_back(name + ": " + text_of(options_.tokenizer.get(), texts[i]));
  }
  return samples;
}

std::vector<std::pair<std::string, Value>> NuwaStage::weights(std::int64_t step,
                                                              const Value& /*ema*/) {
  return {{"nuwa." + std::to_string(step) + ".pt", to_value(state_tensors(*model_))}};
}

}  // namespace millrace
