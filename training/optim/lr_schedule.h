// The learning rate over the steps of a run, as a factor of the optimizer's own rate. It depends on
// the step alone, so there is nothing to save. Warm-up is multiplied on top, and ends at 1.
//
//   Schedule schedule({.kind = ScheduleKind::cosine, .steps = 10'000, .warmup_steps = 1'000});
//   optimizer.step(schedule.factor(step));        // steps count from 0
#pragma once

#include <cstdint>
#include <string_view>

namespace millrace {

enum class ScheduleKind : std::uint8_t { constant, linear, cosine, step };

// From "constant", "linear", "cosine" or "step"; throws an Error that names the four.
ScheduleKind schedule_kind(std::string_view name);

struct ScheduleOptions {
  ScheduleKind kind = ScheduleKind::constant;
  std::int64_t steps = 0;         // linear and cosine: where the end is reached, and kept
  double start_factor = 1;        // linear
  double end_factor = 0;          // linear and cosine
  std::int64_t step_size = 1000;  // step: the rate falls by `gamma` every so many steps
  double gamma = 0.1;
  std::int64_t warmup_steps = 0;  // min(1, (step + 1) / warmup_steps)
  // A fault of some trainers in Python, for comparisons: the schedule begins when the first step of
  // the warm-up has been taken off the rate, and never learns what was asked for.
  bool stays_at_first_warmup_rate = false;
};

class Schedule {
 public:
  // Throws an Error that names the number if it cannot be.
  explicit Schedule(const ScheduleOptions& options = {});

  double factor(std::int64_t step) const;
  // The same without warm-up.
  double undampened(std::int64_t step) const;
  const ScheduleOptions& options() const { return options_; }

 private:
  ScheduleOptions options_;
};

}  // namespace millrace
