// The pluggable part of a trainer: its models, its optimizers, and what one batch does to them. A
// stage has no loop, opens no file and asks for no signal; the Scheduler does.
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
  std::string state;  // its name in a checkpoint: "optim", "discr_optim"
  Optimizer* optimizer = nullptr;
  double max_grad_norm = 0;  // 0: not clipped
  // The names of its warm-up and its schedule in a checkpoint, for trainers in Python that save
  // them; empty: without. Here both follow from the step.
  std::string warmup{}, schedule{};
  std::string group{};  // all three are saved in a dictionary of this name; empty: as they are
};

// What a loss moves: one optimizer, or several that share its batches. A step goes through all
// phases in their order, each with batches of its own.
struct Phase {
  std::string loss;  // its name in the log: "loss", "discr_loss"
  std::vector<PhaseOptimizer> optimizers{};
  // Steps before it leave the phase out; warm-up and schedule count from it.
  std::int64_t first_step = 0;
};

struct MicroStep {
  std::int64_t step = 0;  // from 0
  std::size_t phase = 0;
  double scale = 1;  // of the gradients: 1 / the number of micro-batches, on all ranks
};

struct Picture {
  std::string name;  // of the file, without its extension
  Array pixels;      // uint8, [height, width, channels], or [frames, height, width, channels]
  double frames_per_second = 10;
};

// A whole file, e.g. a mesh or a text.
struct ResultFile {
  std::string name;  // with its extension
  std::string content;
};

// Results to look at.
struct Samples {
  std::vector<Picture> pictures{};  // .png, or .gif if they have frames
  std::vector<ResultFile> files{};
  std::vector<std::string> lines{};  // for the log
};

// How the trainer in Python keeps the moving average in its checkpoints.
struct AverageState {
  std::string name = "ema";
  bool with_online_model = true;
};

class Stage {
 public:
  virtual ~Stage() = default;

  virtual torch::nn::Module& model() = 0;
  // Another of the same shape, which holds the moving average; the model itself in a stage that
  // runs without one.
  virtual torch::nn::Module& average() = 0;
  virtual std::vector<Phase> phases() = 0;
  // Called once if there are ranks: statistics that the model keeps over batches, such as those of
  // a codebook, are then over the batches of all ranks. Gradients are the scheduler's.
  virtual void join(RankGroup& /*ranks*/) {}

  // Runs a micro-batch forward and backward. Returns the loss under its phase's name, and parts of
  // it as the stage likes.
  virtual Logs backward(const Batch& batch, const MicroStep& micro) = 0;
  // How long backward passes have taken since the stage was made, if it measures that.
  virtual double backward_seconds() const { return 0; }
  // The losses of a validation batch. Called in eval mode, without gradients.
  virtual Logs validate(const Batch& batch, bool average) = 0;
  // Before the first and after the last of them, on every rank: for what is judged over all batches
  // of all ranks, e.g. what is found among them. The last gives numbers as validate() does.
  virtual void begin_validation() {}
  virtual Logs end_validation(bool /*average*/) { return {}; }
  // Results to look at, from a batch of the validation set. Likewise.
  virtual Samples sample(const Batch& /*batch*/, std::int64_t /*step*/, bool /*average*/) {
    return {};
  }
  // The files that hold weights alone, as the trainers in Python name them.
  virtual std::vector<std::pair<std::string, Value>> weights(std::int64_t /*step*/,
                                                             const Value& /*ema*/) {
    return {};
  }
  virtual AverageState average_state() const { return {}; }
  // The model's constructor arguments, for checkpoints.
  virtual std::string config() const = 0;
};

}  // namespace millrace
