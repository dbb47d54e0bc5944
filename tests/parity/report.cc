#include "tests/parity/report.h"

#include <millrace/training/device/torch_api.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

namespace millrace {

namespace {

struct Difference {
  double absolute = 0;  // largest difference of an element
  double norm = 0;
};

Difference difference(const torch::Tensor& ours, const torch::Tensor& wanted) {
  if (ours.numel() == 0) return {};
  const torch::Tensor d = ours.detach().to(torch::kFloat64) - wanted.to(torch::kFloat64);
  return {d.abs().max().item<double>(), d.norm().item<double>()};
}

double length(const torch::Tensor& x) {
  return x.detach().to(torch::kFloat64).norm().item<double>();
}

}  // namespace

std::set<std::string> zero_gradients(const NamedTensors& gradients, double share) {
  double largest = 0;
  for (const auto& [name, tensor] : gradients) largest = std::max(largest, length(tensor));
  std::set<std::string> names;
  for (const auto& [name, tensor] : gradients) {
    if (length(tensor) <= share * largest) names.insert(name);
  }
  return names;
}

void Report::line(const std::string& name, double absolute, double relative, double limit,
                  const std::string& remark) {
  const bool good = relative <= limit;  // false for NaN
  ++(good ? passed_ : failed_);
  if (!good || verbose_) {
    std::printf("%s: %-28s %s  absolute %.2e  relative %.2e  (limit %.0e)%s%s\n", file_.c_str(),
                name.c_str(), good ? "ok  " : "FAIL", absolute, relative, limit,
                remark.empty() ? "" : "  ", remark.c_str());
  }
}

void Report::failure(const std::string& why) {
  ++failed_;
  std::printf("%s: FAIL %s\n", file_.c_str(), why.c_str());
}

void Report::loss(const std::string& name, const torch::Tensor& ours, const torch::Tensor& wanted,
                  bool after_steps) {
  const double a = ours.item<double>(), b = wanted.item<double>();
  const double absolute = std::abs(a - b);
  line("loss " + name, absolute, absolute / std::max(std::abs(b), 1e-6),
       after_steps ? tolerance_.step : tolerance_.loss);
}

void Report::part(const Fixture& fixture, const std::string& name, const torch::Tensor& ours) {
  if (!fixture.has("loss/" + name)) return;
  if (!ours.defined()) return failure(c10::str("loss ", name, " is missing"));
  loss(name, ours, fixture.tensor("loss/" + name));
}

void Report::output(const std::string& name, const torch::Tensor& ours,
                    const torch::Tensor& wanted) {
  if (ours.sizes() != wanted.sizes()) {
    return failure(c10::str("output ", name, " has another shape"));
  }
  const Difference d = difference(ours, wanted);
  if (!wanted.is_floating_point()) return line("output " + name, d.absolute, d.absolute, 0);
  line("output " + name, d.absolute, d.norm / std::max(length(wanted), 1e-12), tolerance_.output);
}

void Report::compare_all(const std::string& what, const NamedTensors& ours,
                         const NamedTensors& wanted, double limit, double floor, bool as_one) {
  std::map<std::string, torch::Tensor> by_name;
  for (const auto& [name, tensor] : ours) by_name.emplace(name, tensor);
  double largest = 0;
  for (const auto& [name, tensor] : wanted) largest = std::max(largest, length(tensor));
  double worst = 0, worst_absolute = 0, wanted_square = 0, difference_square = 0;
  std::string worst_name;
  for (const auto& [name, tensor] : wanted) {
    auto found = by_name.find(name);
    if (found == by_name.end() || !found->second.defined()) {
      failure(c10::str(what, ": ", name, " is missing"));
      continue;
    }
    if (found->second.sizes() != tensor.sizes()) {
      failure(c10::str(what, ": ", name, " has another shape"));
      continue;
    }
    const Difference d = difference(found->second, tensor);
    difference_square += d.norm * d.norm;
    wanted_square += length(tensor) * length(tensor);
    double relative = d.norm / std::max(length(tensor), 1e-12);
    if (std::max(length(tensor), length(found->second)) <= floor * largest) relative = 0;
    worst_absolute = std::max(worst_absolute, d.absolute);
    if (worst_name.empty() || !(relative <= worst)) worst = relative, worst_name = name;
    by_name.erase(found);
  }
  // Parameters without a gradient in Python must have none here.
  for (const auto& [name, tensor] : by_name) {
    if (tensor.defined() && length(tensor) > floor * largest)
      failure(c10::str(what, ": ", name, " exists here only"));
  }
  if (as_one) {
    worst = std::sqrt(difference_square / std::max(wanted_square, 1e-24));
    worst_name = c10::str(worst_name, ", all as one vector");
  }
  line(what, worst_absolute, worst, limit, c10::str(wanted.size(), " tensors, worst ", worst_name));
}

void Report::gradients(const std::string& tag, const NamedTensors& ours, const NamedTensors& wanted,
                       bool other_order) {
  if (wanted.empty()) return;
  compare_all("gradients " + tag, ours, wanted, tolerance_.gradient,
              tolerance_.zero * (other_order ? 10 : 1), tolerance_.as_trained);
}

void Report::all_gradients(const std::string& tag, const NamedTensors& ours,
                           const NamedTensors& wanted) {
  compare_all("gradients " + tag, ours, wanted, tolerance_.gradient, 10 * tolerance_.zero, true);
}

void Report::tensors(const std::string& what, const NamedTensors& ours,
                     const NamedTensors& wanted) {
  compare_all(what, ours, wanted, tolerance_.step, 0, tolerance_.as_trained);
}

}  // namespace millrace
