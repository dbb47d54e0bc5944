// Exponential moving average (EMA) of a model's weights, with the formula, the defaults and the
// state_dict of ema-pytorch 0.4.8. Only floating point tensors are averaged.
//
//   Ema ema(state_tensors(*model), state_tensors(*average), {.beta = 0.995});
//   optimizer.step();
//   ema.update();
#pragma once

#include <millrace/training/checkpoint/tensors.h>
#include <millrace/training/checkpoint/value.h>
#include <millrace/training/optim/ema_options.h>

#include <cstdint>
#include <string>
#include <vector>

namespace millrace {

class Ema {
 public:
  // Both are the tensors of a state_dict, with the same names in the same order. `average` is
  // updated in place.
  Ema(NamedTensors online, NamedTensors average, const EmaOptions& options = {});

  void update();
  // The factor of the old average in the last update.
  double decay() const;
  std::int64_t step() const { return step_; }

  // {"initted", "step", "online_model.*" (optional), "ema_model.*"}
  Value state(bool with_online_model = true) const;
  // Restores the average and its step, not the online model.
  void load(const Value& state, const std::string& source);

 private:
  void copy();
  std::vector<std::size_t> floating() const;  // indices of the tensors to average

  NamedTensors online_, average_;
  EmaOptions options_;
  std::int64_t step_ = 0;
  bool started_ = false;  // "initted" in the saved state
};

}  // namespace millrace
