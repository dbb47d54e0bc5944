// The moving average of a model's weights, with the formula, the defaults and the saved state of
// ema-pytorch 0.4.8. Floating tensors are averaged; others are left as they are.
//
//   Ema ema(model.tensors(), average.tensors(), {.beta = 0.995, .update_after_step = 0});
//   optimizer.step();
//   ema.update();
#pragma once

#include <millrace/training/checkpoint/value.h>
#include <millrace/training/optim/ema_options.h>

#include <cstdint>
#include <string>
#include <vector>

namespace millrace {

class Ema {
 public:
  // Both are the tensors of a state_dict, with the same names in the same order.
  Ema(NamedTensors online, NamedTensors average, const EmaOptions& options = {});

  void update();
  // How much of the old average the last update kept.
  double decay() const;
  std::int64_t step() const { return step_; }

  // {"initted", "step", "online_model.*" if wanted, "ema_model.*"}
  Value state(bool with_online_model = true) const;
  // Brings the average and its step back; the online model is the caller's.
  void load(const Value& state, const std::string& source);

 private:
  void copy();
  std::vector<std::size_t> floating() const;  // which of them move

  NamedTensors online_, average_;
  EmaOptions options_;
  std::int64_t step_ = 0;
  bool started_ = false;  // "initted"
};

}  // namespace millrace
