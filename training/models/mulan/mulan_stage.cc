#include <millrace/pipeline/base/error.h>
#include <millrace/pipeline/base/random.h>
#include <millrace/training/checkpoint/tensors.h>
#include <millrace/training/device/tensor.h>
#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/module/module_tensors.h>
#include <millrace/training/models/mulan/mulan_stage.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string_view>

namespace millrace {

namespace {

// Note [contrast over ranks]
// Every rank computes the whole loss from the latents of all ranks. Backward gives each rank the
// gradient of its own latents, and so its part of the parameters' gradient; the sum over the ranks
// is the whole gradient. But the scheduler averages gradients over ranks, because other losses are
// means over a rank's own rows. So the gradient of the latents is multiplied by `world`. The
// gradient of the temperature is complete on every rank and is not multiplied. The package does not
// multiply: its gradients shrink with the number of ranks.
class GatherRows : public torch::autograd::Function<GatherRows> {
 public:
  // Concatenates [parts, rows, dim] of all ranks to [parts, rows of all ranks, dim].
  static torch::Tensor forward(torch::autograd::AutogradContext* context, const torch::Tensor& mine,
                               RankGroup* ranks) {
    context->saved_data["rank"] = static_cast<std::int64_t>(ranks->rank());
    context->saved_data["world"] = static_cast<std::int64_t>(ranks->world());
    return torch::cat(ranks->gather(mine.contiguous()), 1);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const std::int64_t rank = context->saved_data["rank"].toInt();
    const std::int64_t world = context->saved_data["world"].toInt();
    const std::int64_t rows = gradients[0].size(1) / world;
    const torch::Tensor mine = gradients[0].narrow(1, rank * rows, rows);
    return {mine * static_cast<double>(world), torch::Tensor()};
  }
};

// Packs all latents into one tensor [parts, rows, dim]. unpacked() reverses it.
torch::Tensor packed(const MulanLatents& latents) {
  std::vector<torch::Tensor> parts{latents.audio.unsqueeze(0), latents.text.unsqueeze(0)};
  if (latents.audio_layers.defined()) {
    parts.push_back(latents.audio_layers);
    parts.push_back(latents.text_layers);
  }
  return torch::cat(parts);
}

MulanLatents unpacked(const torch::Tensor& parts) {
  MulanLatents latents{.audio = parts[0], .text = parts[1]};
  const std::int64_t layers = (parts.size(0) - 2) / 2;
  if (layers > 0) {
    latents.audio_layers = parts.narrow(0, 2, layers);
    latents.text_layers = parts.narrow(0, 2 + layers, layers);
  }
  return latents;
}

MulanLatents rows_of(const MulanLatents& latents, std::int64_t first, std::int64_t count) {
  return unpacked(packed(latents).narrow(1, first, count));
}

// Fraction of the rows of `from` that have a row with their own caption among the `within` nearest
// of `to`.
double fraction_found(const torch::Tensor& from, const torch::Tensor& to,
                      const torch::Tensor& caption, std::int64_t within) {
  constexpr std::int64_t rows_at_once = 1024;  // bounds memory, which would grow with rows squared
  const std::int64_t rows = from.size(0);
  std::int64_t found = 0;
  for (std::int64_t first = 0; first < rows; first += rows_at_once) {
    const std::int64_t count = std::min(rows_at_once, rows - first);
    const torch::Tensor similarity = torch::matmul(from.narrow(0, first, count), to.t());
    const torch::Tensor nearest = std::get<1>(similarity.topk(std::min(within, rows), 1));
    const torch::Tensor own = caption.narrow(0, first, count).unsqueeze(1);
    found += caption.index({nearest}).eq(own).any(1).sum().item<std::int64_t>();
  }
  return static_cast<double>(found) / static_cast<double>(rows);
}

// Concatenates the tensors of all ranks along axis 1. Ranks may have different numbers of rows, or
// none.
torch::Tensor gathered(RankGroup& ranks, const torch::Tensor& mine) {
  const std::int64_t rows = mine.size(1), most = ranks.largest(rows);
  const torch::Tensor even = torch::constant_pad_nd(mine, {0, 0, 0, most - rows});
  const std::vector<torch::Tensor> counts = ranks.gather(torch::tensor({rows}, torch::kInt64));
  std::vector<torch::Tensor> all = ranks.gather(even);
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i] = all[i].narrow(1, 0, counts[i].item<std::int64_t>());
  }
  return torch::cat(all, 1);
}

torch::Tensor caption_numbers(const torch::Tensor& tokens, std::int64_t pad) {
  std::vector<std::int64_t> numbers;
  const torch::Tensor dense = tokens.to(torch::kCPU).contiguous();
  for (std::int64_t row = 0; row < dense.size(0); ++row) {
    const auto* ids = dense[row].const_data_ptr<std::int64_t>();
    std::int64_t length = dense.size(1);
    while (length > 0 && ids[length - 1] == pad) --length;
    const std::string_view bytes(reinterpret_cast<const char*>(ids),
                                 static_cast<std::size_t>(length) * sizeof *ids);
    numbers.push_back(static_cast<std::int64_t>(std::hash<std::string_view>{}(bytes)));
  }
  return torch::tensor(numbers, torch::kInt64);
}

}  // namespace

Retrieval retrieval(const MulanLatents& latents, const torch::Tensor& caption,
                    std::int64_t within) {
  return {.text_to_audio = fraction_found(latents.text, latents.audio, caption, within),
          .audio_to_text = fraction_found(latents.audio, latents.text, caption, within)};
}

MulanStage::MulanStage(const MulanConfig& config, const MulanStageOptions& options)
    : options_(options), model_(config), optimizer_(model_->parameters(), options.optimizer) {
  model_->to(options.device);  // in place: the optimizer's parameters stay valid
  model_->set_draws(draws_);
}

std::vector<Phase> MulanStage::phases() {
  return {
      {.loss = "loss",
       .optimizers = {
           {.state = "optim", .optimizer = &optimizer_, .max_grad_norm = options_.max_grad_norm}}}};
}

MulanLatents MulanStage::latents(const Batch& batch) {
  BatchShare share;
  if (ranks_ != nullptr) {
    share = {.first = ranks_->rank() * batch.size(), .of = ranks_->world() * batch.size()};
  }
  return model_->latents(to_tensor(batch[options_.sounds]), to_tensor(batch[options_.tokens]),
                         share);
}

MulanLatents MulanStage::gather_latents(const MulanLatents& mine) const {
  if (ranks_ == nullptr) return mine;
  return unpacked(GatherRows::apply(packed(mine), ranks_));
}

Logs MulanStage::backward(const Batch& batch, const MicroStep& micro) {
  micro_ = micro.step == step_ ? micro_ + 1 : 0;
  step_ = micro.step;
  draws_->reseed(mix(mix(options_.seed, static_cast<std::uint64_t>(step_)),
                     static_cast<std::uint64_t>(micro_)));
  const torch::Tensor loss = model_->loss(gather_latents(latents(batch)));
  const auto begin = std::chrono::steady_clock::now();
  (loss * micro.scale).backward();
  backward_seconds_ +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return {{"loss", loss.item<double>()}};
}

Logs MulanStage::validate(const Batch& batch, bool /*average*/) {
  validated_.push_back({latents(batch), caption_numbers(to_tensor(batch[options_.tokens]),
                                                        model_->config().text.pad_id)});
  return {};
}

MulanStage::Validated MulanStage::gather_validated() const {
  std::vector<torch::Tensor> latents, captions;
  for (const Validated& one : validated_) {
    latents.push_back(packed(one.latents).to(torch::kCPU));
    captions.push_back(one.caption);
  }
  const std::int64_t parts = 2 + 2 * model_->config().contrasted_layers();
  torch::Tensor all = validated_.empty() ? torch::empty({parts, 0, model_->config().dim_latent})
                                         : torch::cat(latents, 1);
  torch::Tensor caption =
      validated_.empty() ? torch::empty({0}, torch::kInt64) : torch::cat(captions);
  if (ranks_ != nullptr) {
    all = gathered(*ranks_, all);
    caption = gathered(*ranks_, caption.reshape({1, -1, 1})).flatten();
  }
  return {.latents = unpacked(all), .caption = caption};
}

Logs MulanStage::end_validation(bool /*average*/) {
  const Validated all = gather_validated();
  validated_.clear();
  const std::int64_t rows = all.caption.size(0);
  if (rows == 0) return {};
  // In groups of the size that a training step contrasts. An incomplete last group is ignored,
  // because its loss is not comparable.
  const std::int64_t group = std::max<std::int64_t>(std::min(options_.contrasted, rows), 1);
  double sum = 0;
  const std::int64_t groups = rows / group;
  for (std::int64_t i = 0; i < groups; ++i) {
    const MulanLatents part =
        unpacked(packed(rows_of(all.latents, i * group, group)).to(options_.device));
    sum += model_->loss(part).item<double>();
  }
  const Retrieval first = retrieval(all.latents, all.caption, 1);
  const Retrieval among_five = retrieval(all.latents, all.caption, 5);
  return {{"loss", sum / static_cast<double>(groups)},
          {"text_to_audio_r1", first.text_to_audio},
          {"audio_to_text_r1", first.audio_to_text},
          {"text_to_audio_r5", among_five.text_to_audio},
          {"audio_to_text_r5", among_five.audio_to_text}};
}

Samples MulanStage::sample(const Batch& batch, std::int64_t step, bool /*average*/) {
  const MulanLatents now =
      model_->latents(to_tensor(batch[options_.sounds]), to_tensor(batch[options_.tokens]));
  const torch::Tensor similarity = torch::matmul(now.audio, now.text.t()).to(torch::kCPU);
  const auto captions = batch.texts(options_.captions);
  std::string table =
      "# cosine similarity and caption of the nearest text <- caption of the clip\n";
  for (std::int64_t row = 0; row < similarity.size(0); ++row) {
    const auto nearest = similarity[row].argmax().item<std::int64_t>();
    char cosine[16];
    std::snprintf(cosine, sizeof cosine, "%6.3f  ", similarity[row][nearest].item<double>());
    table.append(cosine).append(captions[static_cast<std::size_t>(nearest)]);
    table.append(" <- ").append(captions[static_cast<std::size_t>(row)]).append("\n");
  }
  return {.files = {{.name = "retrieval." + std::to_string(step) + ".txt", .content = table}}};
}

std::vector<std::pair<std::string, Value>> MulanStage::weights(std::int64_t step,
                                                               const Value& /*ema*/) {
  Dict state{{"model", to_value(state_tensors(*model_))}, {"optim", optimizer_.state()}};
  // The Python trainer ignores the entries below.
  state.set("config", config());
  state.set("data", Dict{{"sample_rate", static_cast<std::int64_t>(options_.sample_rate_hz)},
                         {"data_max_length", options_.data_max_length}});
  return {{"mulan." + std::to_string(step) + ".pt", std::move(state)}};
}

}  // namespace millrace
