// Adam, AdamW and Lion, with the formulas, the defaults and the state_dict of torch.optim and
// lion-pytorch. Either side can load the optimizer state that the other has saved.
//
//   Optimizer optimizer(model->parameters(), {.kind = OptimizerKind::adamw, .lr = 3e-4,
//                                             .weight_decay = 0.01});
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

  // Parameters keep their order. Those without requires_grad are left out.
  Optimizer(std::vector<torch::Tensor> parameters, const OptimizerOptions& options);

  // Updates every parameter that has a gradient, with `factor` times its group's learning rate.
  void step(double factor = 1);
  void zero_grad();
  // Clips the gradients to the global norm `max_norm` (each group's norm if `clip_each_group`).
  // Returns the global norm before clipping.
  double clip(double max_norm);

  const std::vector<torch::Tensor>& parameters() const { return parameters_; }
  const std::vector<Group>& groups() const { return groups_; }
  void set_lr(double lr);
  double lr() const { return groups_.front().lr; }

  // {"state": {0: {"step", "exp_avg", "exp_avg_sq"}, ...}, "param_groups": [...]}. The groups' "lr"
  // is multiplied by `factor`, so that Python sees the learning rate that the schedule gives.
  Value state(double factor = 1) const;
  // Loads the moments only: learning rates and weight decay come from the configuration. Throws an
  // Error that names `source` if the state does not match the parameters.
  void load(const Value& state, const std::string& source);

 private:
  struct Moments {
    torch::Tensor step, average, square;  // undefined before the first step; Lion: `average` only
  };

  void step_adam(const Group& group, std::size_t first, double lr);
  void step_adam_as_in_python(const Group& group, std::size_t first, double lr);
  void step_lion(const Group& group, std::size_t first, double lr);
  Value group_value(const Group& group, std::size_t first, double factor) const;

  OptimizerOptions options_;
  std::vector<Group> groups_;
  std::vector<torch::Tensor> parameters_;  // of all groups, in the order of the saved state
  std::vector<Moments> moments_;
};

}  // namespace millrace
