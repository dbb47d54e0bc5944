// The part of a trainer that differs between models: the model, its optimizers, and the forward and
// backward pass of a batch. The Scheduler has the loop, the files and the signals.
//
//   class Regression : public Stage {
//    public:
//     torch::nn::Module& model() override { return *line_; }
//     torch::nn::Module& average() override { return *line_; }   // without a moving average
//     std::vector<Phase> phases() override {
//       return {{.loss = "loss", .optimizers = {{.state = "optim", .optimizer = &adam_}}}};
//     }
//     Logs backward(const Batch& batch, const MicroStep& micro) override {
//       torch::Tensor loss = loss_of(batch);
//       (loss * micro.scale).backward();
//       return {{"loss", loss.item<double>()}};
//     }
//     Logs validate(const Batch& batch, bool) override {
//       return {{"loss", loss_of(batch).item<double>()}};
//     }
//     std::string config() const override { return "{}"; }
//
//    private:
//     torch::Tensor loss_of(const Batch& batch) {
//       return torch::mse_loss(line_->forward(to_tensor(batch["x"])), to_tensor(batch["y"]));
//     }
//     torch::nn::Linear line_{1, 1};
//     Optimizer adam_{line_->parameters(), {.lr = 1e-3}};
//   };
#pragma once

#include <millrace/pipeline/data/batch.h>
#include <millrace/training/checkpoint/value.h>
#include <millrace/training/distributed/rank_group.h>
#include <millrace/training/optim/optimizer.h>
#include <millrace/training/tracking/tracker.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <torch/nn/module.h>

namespace millrace {

struct PhaseOptimizer {
  std::string state;               // key in a checkpoint: "optim", "discr_optim"
  Optimizer* optimizer = nullptr;  // borrowed
  double max_grad_norm = 0;        // 0: gradients are not clipped
  // Keys of warm-up and schedule in a checkpoint, for Python trainers that save them; empty: not
  // saved. Millrace computes both from the step.
  std::string warmup{}, schedule{};
  std::string group{};  // key of a dictionary around these three; empty: they are at the top level
};

// One loss and the optimizers that minimize it. A step runs all phases in order, each with batches
// of its own: e.g. the generator, then the discriminator.
struct Phase {
  std::string loss;  // name in the log: "loss", "discr_loss"
  std::vector<PhaseOptimizer> optimizers{};
  // The phase is skipped before this step; its warm-up and schedule start at this step.
  std::int64_t first_step = 0;
};

struct MicroStep {
  std::int64_t step = 0;  // from 0
  std::size_t phase = 0;
  // Factor for the loss: 1 / number of micro-batches on all ranks, times the fp16 loss scale.
  double scale = 1;
};

struct Picture {
  std::string name;  // file name without extension
  Array pixels;      // uint8, [height, width, channels] or [frames, height, width, channels]
  double frames_per_second = 10;
};

// Any other file, e.g. a mesh or a text.
struct ResultFile {
  std::string name;  // file name with extension
  std::string content;
};

// Samples for a person to look at.
struct Samples {
  std::vector<Picture> pictures{};  // written as .png, or as .gif if they have frames
  std::vector<ResultFile> files{};
  std::vector<std::string> lines{};  // for the log
};

// How the Python trainer stores the EMA in its checkpoints.
struct AverageState {
  std::string name = "ema";
  bool with_online_model = true;
};

class Stage {
 public:
  virtual ~Stage() = default;

  virtual torch::nn::Module& model() = 0;
  // The EMA copy of the model; the model itself in a stage without EMA.
  virtual torch::nn::Module& average() = 0;
  virtual std::vector<Phase> phases() = 0;
  // Called once in a distributed run. The stage then reduces the model's running statistics (e.g.
  // of a codebook) over all ranks. The scheduler reduces the gradients.
  virtual void join(RankGroup& /*ranks*/) {}

  // Runs forward and backward on a micro-batch. Returns the loss under its phase's name, and any
  // other values to log.
  virtual Logs backward(const Batch& batch, const MicroStep& micro) = 0;
  // Total time spent in backward passes; 0 if the stage does not measure it.
  virtual double backward_seconds() const { return 0; }
  // Losses of a validation batch. `average` selects the EMA model. Called in eval mode, without
  // gradients.
  virtual Logs validate(const Batch& batch, bool average) = 0;
  // Called on every rank before the first and after the last validation batch, for metrics over the
  // whole validation set, e.g. retrieval. end_validation() returns them like validate().
  virtual void begin_validation() {}
  virtual Logs end_validation(bool /*average*/) { return {}; }
  // Samples from a validation batch. Called in eval mode, without gradients, on rank 0.
  virtual Samples sample(const Batch& /*batch*/, std::int64_t /*step*/, bool /*average*/) {
    return {};
  }
  // Files with weights only, named as by the Python trainer. `ema` is none in a run without EMA.
  virtual std::vector<std::pair<std::string, Value>> weights(std::int64_t /*step*/,
                                                             const Value& /*ema*/) {
    return {};
  }
  virtual AverageState average_state() const { return {}; }
  // The model's configuration as JSON, for checkpoints.
  virtual std::string config() const = 0;
};

}  // namespace millrace
