// Trains MuLaN: each step contrasts all clips with all texts of the batches of all ranks.
// Validation covers the whole validation set: the loss, and how often a text retrieves its clip and
// a clip its text.
//
//   MulanStage stage(MulanConfig{.dim_latent = 128}, {.contrasted = 8});   // 8 pairs a step
#pragma once

#include <millrace/training/loop/stage.h>
#include <millrace/training/models/mulan/mulan.h>
#include <millrace/training/models/mulan/mulan_stage_options.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace millrace {

// Recall of a retrieval among n unit vectors [n, dim]. text_to_audio is the fraction of texts with
// a clip of their caption among the `within` nearest clips; audio_to_text is the reverse. Rows with
// equal `caption` [n] count as matches.
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
  void begin_validation() override { validated_.clear(); }
  // Only stores latents; end_validation() computes the metrics.
  Logs validate(const Batch& batch, bool average) override;
  // Returns "loss", "text_to_audio_r1", "audio_to_text_r1", "text_to_audio_r5" and
  // "audio_to_text_r5".
  Logs end_validation(bool average) override;
  // File "retrieval.<step>.txt": the nearest text of each clip of a batch.
  Samples sample(const Batch& batch, std::int64_t step, bool average) override;
  // File mulan.<step>.pt, which the Python trainer can load. Also contains "config" and "data".
  std::vector<std::pair<std::string, Value>> weights(std::int64_t step, const Value& ema) override;
  std::string config() const override { return model_->config().to_json(); }

 private:
  struct Validated {
    MulanLatents latents;
    torch::Tensor caption;  // [rows], a hash of the caption's tokens
  };

  MulanLatents latents(const Batch& batch);
  // Latents of all ranks. Gradients are correct after averaging over ranks.
  MulanLatents gather_latents(const MulanLatents& mine) const;
  // Everything validated so far, on all ranks.
  Validated gather_validated() const;

  MulanStageOptions options_;
  Mulan model_;
  Optimizer optimizer_;
  RankGroup* ranks_ = nullptr;
  std::shared_ptr<Draws> draws_ = std::make_shared<Draws>();
  std::int64_t step_ = -1, micro_ = 0;  // micro_: number of the micro-batch within the step
  double backward_seconds_ = 0;
  std::vector<Validated> validated_;
};

}  // namespace millrace
