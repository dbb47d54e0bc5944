// Compares tensors with those of a fixture; counts passed and failed comparisons.
#pragma once

#include "tests/parity/fixture.h"

#include <millrace/training/checkpoint/tensors.h>

#include <set>
#include <string>

#include <torch/types.h>

namespace millrace {

struct Tolerance {
  // Relative errors. For tensors: norm of the difference / norm of the reference.
  double loss = 1e-5;
  double output = 1e-5;
  double gradient = 1e-4;
  double step = 1e-4;
  // A gradient whose norm is below this fraction of the largest counts as rounding error; ten times
  // this fraction if sums are taken in another order than in Python.
  double zero = 1e-6;
  // The model runs as in training, with another order of operations than Python. Gradients with
  // strong cancellation then differ even in their first digits, so all gradients are compared as
  // one vector, and so are all parameters. Models without a separate reference path ignore this.
  bool as_trained = false;
};

// The names of the gradients whose norm is at most `share` of the largest.
std::set<std::string> zero_gradients(const NamedTensors& gradients, double share);

class Report {
 public:
  Report(std::string file, const Tolerance& tolerance, bool verbose)
      : file_(std::move(file)), tolerance_(tolerance), verbose_(verbose) {}

  // `after_steps`: the optimizer has already stepped, so the tolerance is that of steps.
  void loss(const std::string& name, const torch::Tensor& ours, const torch::Tensor& wanted,
            bool after_steps = false);
  // Compares a part of a loss if the fixture has it.
  void part(const Fixture& fixture, const std::string& name, const torch::Tensor& ours);
  // Integers must be equal.
  void output(const std::string& name, const torch::Tensor& ours, const torch::Tensor& wanted);
  // Prints one line for all gradients of a tag, with the name of the worst. A gradient that is only
  // rounding error on both sides passes, e.g. of a bias before a norm that cancels it.
  void gradients(const std::string& tag, const NamedTensors& ours, const NamedTensors& wanted,
                 bool other_order = false);
  // Compares all gradients as one vector, for a model with another order of operations than Python.
  void all_gradients(const std::string& tag, const NamedTensors& ours, const NamedTensors& wanted);
  // Compares parameters after optimizer steps, or buffers.
  void tensors(const std::string& what, const NamedTensors& ours, const NamedTensors& wanted);
  void failure(const std::string& why);
  const Tolerance& tolerance() const { return tolerance_; }

  int passed() const { return passed_; }
  int failed() const { return failed_; }

 private:
  void line(const std::string& name, double absolute, double relative, double limit,
            const std::string& remark = "");
  void compare_all(const std::string& what, const NamedTensors& ours, const NamedTensors& wanted,
                   double limit, double floor, bool as_one);

  std::string file_;
  Tolerance tolerance_;
  bool verbose_;
  int passed_ = 0, failed_ = 0;  // lines
};

}  // namespace millrace
