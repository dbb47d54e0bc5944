// Trains MuLaN: every sound of a step is contrasted with every text of it, over the batches of all
// ranks. What is held out is judged as a whole: the loss, and how often a text finds its sound
// among all sounds of it, and a sound its text.
//
//   MulanStage stage(MulanConfig{...}, {.contrasted = batch_size * world});
#pragma once

#include <millrace/training/loop/stage.h>
#include <millrace/training/models/mulan/mulan.h>
#include <millrace/training/models/mulan/mulan_stage_options.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace millrace {

// Of all latents of length 1, [n, dim]: how many of the texts have a sound of their own caption
// among the `within` nearest of all n, as a share; and the sounds such a text. Sounds with the same
// caption, by `caption` [n], are each other's.
struct Retrieval {
  double text_to_audio = 0, audio_to_text = 0;
};
Retrieval retrieval(const MulanLatents& latents, const torch::Tensor& caption, std::int64_t within);

class MulanStage : public Stage {
 public:
  MulanStage(const MulanConfig& config, const MulanStageOptions& options);

  torch::nn::Module& model() override { return *model_; }
  torch::nn::Module& average() override { return *model_; }
  std::vector<Phase> phases() override;
  void join(RankGroup& ranks) override { ranks_ = &ranks; }
  Logs backward(const Batch& batch, const MicroStep& micro) override;
  double backward_seconds() const override { return backward_seconds_; }
  void begin_validation() override { judged_.clear(); }
  // Nothing yet: only keeps latents.
  Logs validate(const Batch& batch, bool average) override;
  // "loss", "text_to_audio_r1", "audio_to_text_r1", and the same with r5.
  Logs end_validation(bool average) override;
  // "retrieval.<step>.txt": the texts of a batch, and which of them its sounds are nearest to.
  Samples sample(const Batch& batch, std::int64_t step, bool average) override;
  // mulan.<step>.pt, which the trainer in Python loads; it also has "config" and "data".
  std::vector<std::pair<std::string, Value>> weights(std::int64_t step, const Value& ema) override;
  std::string config() const override { return model_->config().to_json(); }

 private:
  struct Judged {
    MulanLatents latents;
    torch::Tensor caption;  // [rows], a number that stands for it
  };

  MulanLatents latents(const Batch& batch);
  // Those of all ranks, with gradients that are right when the gradients of the ranks are averaged.
  MulanLatents of_all_ranks(const MulanLatents& mine) const;
  // What has been judged, on this rank or on all.
  Judged judged() const;

  MulanStageOptions options_;
  Mulan model_;
  Optimizer optimizer_;
  RankGroup* ranks_ = nullptr;
  std::shared_ptr<Draws> draws_ = std::make_shared<Draws>();
  std::int64_t step_ = -1, micro_ = 0;  // the micro-batch of the step
  double backward_seconds_ = 0;
  std::vector<Judged> judged_;
};

}  // namespace millrace
