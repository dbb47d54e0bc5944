#include <millrace/pipeline/base/error.h>
#include <millrace/training/checkpoint/checkpoint.h>
#include <millrace/training/checkpoint/tensors.h>
#include <millrace/training/device/torch_api.h>
#include <millrace/training/optim/ema.h>

#include <algorithm>
#include <cmath>
#include <set>

#include <c10/util/StringUtil.h>

namespace millrace {

Ema::Ema(NamedTensors online, NamedTensors average, const EmaOptions& options)
    : online_(std::move(online)), average_(std::move(average)), options_(options) {
  bool same = online_.size() == average_.size();
  for (std::size_t i = 0; same && i < online_.size(); ++i) {
    same = online_[i].first == average_[i].first &&
           online_[i].second.sizes() == average_[i].second.sizes();
  }
  if (!same) throw Error("the EMA must have the tensors of the model").kind(ErrorKind::usage);
  if (options_.update_every < 1) {
    throw Error(
        c10::str("the EMA's update_every must be at least 1, but is ", options_.update_every))
        .kind(ErrorKind::usage);
  }
}

double Ema::decay() const {
  // In float, as ema-pytorch computes it: near 1 the result differs visibly from that in double.
  const auto epoch = static_cast<float>(step_ - options_.update_after_step - 1);
  if (epoch <= 0) return 0;
  const float value = 1 - std::pow(1 + epoch / static_cast<float>(options_.inv_gamma),
                                   -static_cast<float>(options_.power));
  return std::clamp(value, static_cast<float>(options_.min_value),
                    static_cast<float>(options_.beta));
}

void Ema::copy() {
  torch::NoGradGuard no_grad;
  for (std::size_t i = 0; i < online_.size(); ++i) {
    if (average_[i].second.is_floating_point()) average_[i].second.copy_(online_[i].second);
  }
}

// A tensor with several names, e.g. a codebook shared by quantizers, must be updated only once.
std::vector<std::size_t> Ema::floating() const {
  std::vector<std::size_t> once;
  std::set<const void*> seen;
  for (std::size_t i = 0; i < average_.size(); ++i) {
    const torch::Tensor& tensor = average_[i].second;
    if (!tensor.is_floating_point()) continue;
    if (tensor.numel() == 0 || seen.insert(tensor.const_data_ptr()).second) once.push_back(i);
  }
  return once;
}

void Ema::update() {
  const std::int64_t step = step_++;
  if (step % options_.update_every != 0) return;
  if (step <= options_.update_after_step) {
    copy();
    return;
  }
  if (!started_) {
    copy();
    started_ = true;
  }
  if (options_.beta == 1) return;
  torch::NoGradGuard no_grad;
  const double weight = 1 - decay();
  for (const std::size_t i : floating()) average_[i].second.lerp_(online_[i].second, weight);
}

Value Ema::state(bool with_online_model) const {
  Dict state{{"initted", to_value(torch::tensor(started_))},
             {"step", to_value(torch::tensor(step_))}};
  if (with_online_model) {
    for (const auto& [name, tensor] : online_) state.set("online_model." + name, to_value(tensor));
  }
  for (const auto& [name, tensor] : average_) state.set("ema_model." + name, to_value(tensor));
  return state;
}

void Ema::load(const Value& state, const std::string& source) {
  Dict average;
  const std::string prefix = "ema_model.";
  for (const auto& [key, value] : state.as_dict()) {
    const std::string& name = key.as_string();
    if (name.starts_with(prefix)) average.set(name.substr(prefix.size()), value);
  }
  copy_tensors(average, average_, source);
  step_ = as_tensor(state["step"]).item<std::int64_t>();
  started_ = as_tensor(state["initted"]).item<bool>();
}

}  // namespace millrace
