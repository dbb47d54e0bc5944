// Learning rate schedule: a factor for the optimizer's learning rate at each step. It depends only
// on the step, so it has no state to save. Linear warm-up multiplies the factor and ends at 1.
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
  std::int64_t steps = 0;         // linear and cosine: number of steps to reach end_factor
  double start_factor = 1;        // linear
  double end_factor = 0;          // linear and cosine; kept after `steps`
  std::int64_t step_size = 1000;  // step: number of steps between multiplications by `gamma`
  double gamma = 0.1;             // step
  std::int64_t warmup_steps = 0;  // warm-up factor: min(1, (step + 1) / warmup_steps)
  // Reproduces a bug of some Python trainers, for comparisons with them: the schedule is created
  // after warm-up has already reduced the learning rate, and takes that reduced rate as its base.
  bool stays_at_first_warmup_rate = false;
};

class Schedule {
 public:
  // Throws an Error of kind usage if a number of steps that the schedule needs is less than 1.
  explicit Schedule(const ScheduleOptions& options = {});

  double factor(std::int64_t step) const;
  // The factor without warm-up.
  double undampened(std::int64_t step) const;
  const ScheduleOptions& options() const { return options_; }

 private:
  ScheduleOptions options_;
};

}  // namespace millrace
