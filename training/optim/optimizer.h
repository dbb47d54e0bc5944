// Adam, AdamW and Lion, with the formulas, the defaults and the saved state of torch.optim and
// lion-pytorch: a checkpoint's "optim" goes both ways.
//
//   Optimizer optimizer(model.parameters(), {.kind = OptimizerKind::adamw, .lr = 3e-4,
//                                            .weight_decay = 0.01});
//   loss.backward();
//   optimizer.step(schedule.factor(step));
//   optimizer.zero_grad();
#pragma once

#include <millrace/training/checkpoint/value.h>
#include <millrace/training/optim/optimizer_options.h>

#include <cstdint>
#include <string>
#include <vector>

#include <torch/types.h>

namespace millrace {

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
