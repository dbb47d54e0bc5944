// Mixed precision: forward passes in 16 bits where that is safe, weights and their updates in 32.
//
//   Autocast autocast(Precision::bf16, torch::kCPU);      // as long as it lives
//
// Half precision (fp16) has a small range, so its loss is scaled up before backward and its
// gradients down after it, by the rules of torch.amp.GradScaler:
//
//   LossScaler scaler;
//   (loss * scaler.scale()).backward();
//   if (scaler.unscale(parameters)) optimizer.step();     // else: not finite, skip the step
//   scaler.update();
#pragma once

#include <millrace/training/checkpoint/value.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <torch/types.h>

namespace millrace {

enum class Precision : std::uint8_t { full, bf16, fp16 };

// From "no", "bf16" or "fp16"; throws an Error that names the three.
Precision precision(std::string_view name);

class Autocast {
 public:
  Autocast(Precision precision, torch::DeviceType device);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  torch::DeviceType device_;
  bool on_;
};

struct LossScalerOptions {
  double init_scale = 65536;
  double growth_factor = 2;
  double backoff_factor = 0.5;
  std::int64_t growth_interval = 2000;  // so many finite steps in a row double the scale
};

class LossScaler {
 public:
  explicit LossScaler(const LossScalerOptions& options = {}, torch::Device device = torch::kCPU);

  double scale() const;
  // Divides the gradients by the scale. False if one of them is not finite.
  bool unscale(const std::vector<torch::Tensor>& parameters);
  // After a step, or after it was skipped: the scale shrinks, stays or grows.
  void update();

  // {"scale", "growth_factor", "backoff_factor", "growth_interval", "_growth_tracker"}
  Value state() const;
  void load(const Value& state);

 private:
  LossScalerOptions options_;
  torch::Tensor scale_, tracker_, found_;  // found_: 1 if a gradient since update() was not finite
};

}  // namespace millrace
