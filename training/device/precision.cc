#include <millrace/pipeline/base/error.h>
#include <millrace/training/device/precision.h>
#include <millrace/training/device/torch_api.h>

#include <map>

#include <ATen/autocast_mode.h>
#include <c10/util/StringUtil.h>

namespace millrace {

Precision precision(std::string_view name) {
  if (name == "no") return Precision::full;
  if (name == "bf16") return Precision::bf16;
  if (name == "fp16") return Precision::fp16;
  throw Error(c10::str("unknown precision '", name, "'; choose no, bf16 or fp16"))
      .kind(ErrorKind::usage);
}

Autocast::Autocast(Precision precision, torch::DeviceType device)
    : device_(device), on_(precision != Precision::full) {
  if (!on_) return;
  at::autocast::set_autocast_dtype(device_,
                                   precision == Precision::bf16 ? at::kBFloat16 : at::kHalf);
  at::autocast::set_autocast_enabled(device_, true);
}

Autocast::~Autocast() {
  if (!on_) return;
  at::autocast::set_autocast_enabled(device_, false);
  at::autocast::clear_cache();
}

LossScaler::LossScaler(const LossScalerOptions& options, torch::Device device) : options_(options) {
  const auto real = torch::TensorOptions().device(device).dtype(torch::kFloat32);
  scale_ = torch::full({}, options.init_scale, real);
  tracker_ = torch::zeros({}, real.dtype(torch::kInt32));
  found_ = torch::zeros({}, real);
}

double LossScaler::scale() const {
  return scale_.item<double>();
}

bool LossScaler::unscale(const std::vector<torch::Tensor>& parameters) {
  torch::NoGradGuard no_grad;
  std::map<torch::ScalarType, std::vector<torch::Tensor>> gradients;
  for (const torch::Tensor& parameter : parameters) {
    if (parameter.grad().defined()) {
      gradients[parameter.grad().scalar_type()].push_back(parameter.grad());
    }
  }
  const torch::Tensor inverse = scale_.to(torch::kFloat64).reciprocal().to(torch::kFloat32);
  torch::Tensor found = torch::zeros_like(found_);
  for (auto& [dtype, same] : gradients) {
    at::_amp_foreach_non_finite_check_and_unscale_(same, found, inverse);
  }
  found_ = torch::maximum(found_, found);
  return found.item<float>() == 0;
}

void LossScaler::update() {
  at::_amp_update_scale_(scale_, tracker_, found_, options_.growth_factor, options_.backoff_factor,
                         options_.growth_interval);
  found_.zero_();
}

Value LossScaler::state() const {
  return Dict{{"scale", scale()},
              {"growth_factor", options_.growth_factor},
              {"backoff_factor", options_.backoff_factor},
              {"growth_interval", options_.growth_interval},
              {"_growth_tracker", static_cast<std::int64_t>(tracker_.item<int>())}};
}

void LossScaler::load(const Value& state) {
  scale_.fill_(state["scale"].as_double());
  options_.growth_factor = state["growth_factor"].as_double();
  options_.backoff_factor = state["backoff_factor"].as_double();
  options_.growth_interval = state["growth_interval"].as_int();
  tracker_.fill_(state["_growth_tracker"].as_int());
}

}  // namespace millrace
