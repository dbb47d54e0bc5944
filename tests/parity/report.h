// Compares tensors with those of a fixture and counts what passed.
#pragma once

#include "tests/parity/fixture.h"

#include <millrace/training/checkpoint/tensors.h>

#include <set>
#include <string>

#include <torch/types.h>

namespace millrace {

struct Tolerance {
  double loss = 1e-5;      // of the value
  double output = 1e-5;    // norm of the difference over the norm
  double gradient = 1e-4;  // likewise
  double step = 1e-4;      // likewise
  // A gradient below this share of the largest is zero but for rounding; ten times this share where
  // sums are taken in another order than Python's.
  double zero = 1e-6;
  // The model runs as it trains by default, which takes sums in another order than Python:
  // gradients that cancel almost differ in their first digits then, so all gradients are compared
  // as one vector, and so are all parameters. Models without such a way of their own do not look at
  // it.
  bool as_trained = false;
};

// The names of such gradients.
std::set<std::string> zero_gradients(const NamedTensors& gradients, double share);

class Report {
 public:
  Report(std::string file, const Tolerance& tolerance, bool verbose)
      : file_(std::move(file)), tolerance_(tolerance), verbose_(verbose) {}

  // `after_steps`: of a model that optimizers have moved.
  void loss(const std::string& name, const torch::Tensor& ours, const torch::Tensor& wanted,
            bool after_steps = false);
  // A part of a loss, if the fixture has it.
  void part(const Fixture& fixture, const std::string& name, const torch::Tensor& ours);
  // Integers must be equal.
  void output(const std::string& name, const torch::Tensor& ours, const torch::Tensor& wanted);
  // One line for all gradients of a tag, naming the worst. Those that are zero but for rounding, on
  // both sides, pass: e.g. of a bias before a norm that takes it away again.
  void gradients(const std::string& tag, const NamedTensors& ours, const NamedTensors& wanted,
                 bool other_order = false);
  // Likewise, all as one vector: of a model that takes sums in another order than Python.
  void all_gradients(const std::string& tag, const NamedTensors& ours, const NamedTensors& wanted);
  // Likewise for parameters after optimizer steps, and for buffers.
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
