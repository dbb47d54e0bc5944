// Adam, AdamW and Lion, with the formulas, the defaults and the saved state of torch.optim and
// lion-pytorch: a checkpoint's "optim" goes both ways.
//
//   Optimizer optimizer(model->parameters(), {.kind = OptimizerKind::adamw, .lr = 3e-4,
//                                             .weight_decay = 0.01});
//   loss.backward();
//   optimizer.step(schedule.factor(step));
//   optimizer.zero_grad();
#pragma once

#include <millrace/training/checkpoint/value.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <torch/types.h>

namespace millrace {

enum class OptimizerKind : std::uint8_t { adam, adamw, lion };

// From "adam", "adamw" or "lion"; throws an Error that names the three.
OptimizerKind optimizer_kind(std::string_view name);

struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::adam;
  double lr = 3e-4;
  std::array<double, 2> betas{0.9, 0.999};  // Lion's own default is 0.9, 0.99
  double eps = 1e-8;
  // AdamW and Lion: p *= 1 - lr * weight_decay before the step. Adam: added to the gradient.
  double weight_decay = 0;
  // Parameters of one dimension, such as biases and norms, do not decay: a second group.
  bool decay_matrices_only = true;
  // Takes the operations of torch.optim one by one, in its order, so that results are Python's to
  // the last bit; otherwise one fused kernel does them all.
  bool as_in_python = false;
  // clip() takes the norm of each group by itself, as some trainers in Python do.
  bool clip_each_group = false;
};

class Optimizer {
 public:
  struct Group {
    std::vector<torch::Tensor> parameters;
    double lr = 0;  // before the schedule
    double weight_decay = 0;
  };

  // Parameters keep their order. Those that need no gradient are left out.
  Optimizer(std::vector<torch::Tensor> parameters, const OptimizerOptions& options);

  // Moves every parameter that has a gradient, at `factor` times its group's rate.
  void step(double factor = 1);
  void zero_grad();
  // Scales all gradients so that their common norm is at most `max_norm`, or that of each group;
  // returns what it was of all.
  double clip(double max_norm);

  const std::vector<torch::Tensor>& parameters() const { return parameters_; }
  const std::vector<Group>& groups() const { return groups_; }
  void set_lr(double lr);
  double lr() const { return groups_.front().lr; }

  // {"state": {0: {"step", "exp_avg", "exp_avg_sq"}, ...}, "param_groups": [...]}. `factor` is what
  // the last step had, so that Python sees the rate in force.
  Value state(double factor = 1) const;
  // The tensors of the state, and nothing of the rates: those belong to the configuration. Throws,
  // with `source`, if the state is that of other parameters.
  void load(const Value& state, const std::string& source);

 private:
  struct Moments {
    torch::Tensor step, average, square;  // undefined until the first step; Lion has `average` only
  };

  void step_adam(const Group& group, std::size_t first, double lr);
  void step_adam_as_in_python(const Group& group, std::size_t first, double lr);
  void step_lion(const Group& group, std::size_t first, double lr);
  Value group_value(const Group& group, std::size_t first, double factor) const;

  OptimizerOptions options_;
  std::vector<Group> groups_;
  std::vector<torch::Tensor> parameters_;  // of all groups, as the state numbers them
  std::vector<Moments> moments_;
};

}  // namespace millrace
