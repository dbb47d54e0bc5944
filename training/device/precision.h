// Mixed precision: 16-bit operators in the forward pass, as torch.autocast selects them; weights
// and optimizer states stay in 32 bits.
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
  std::int64_t growth_interval = 2000;  // finite steps in a row until the scale grows
};

class LossScaler {
 public:
  explicit LossScaler(const LossScalerOptions& options = {}, torch::Device device = torch::kCPU);

  double scale() const;
  // Divides the gradients by the scale. Returns false if one of them is not finite.
  bool unscale(const std::vector<torch::Tensor>& parameters);
  // Call once per step, also after a skipped one: adapts the scale.
  void update();

  // {"scale", "growth_factor", "backoff_factor", "growth_interval", "_growth_tracker"}
  Value state() const;
  void load(const Value& state);

 private:
  LossScalerOptions options_;
  torch::Tensor scale_, tracker_;
  torch::Tensor found_;  // 1 if a gradient since the last update() was not finite
};

}  // namespace millrace
