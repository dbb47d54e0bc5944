#include <millrace/pipeline/base/error.h>
#include <millrace/training/optim/lr_schedule.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include <c10/util/StringUtil.h>

namespace millrace {

ScheduleKind schedule_kind(std::string_view name) {
  if (name == "constant") return ScheduleKind::constant;
  if (name == "linear") return ScheduleKind::linear;
  if (name == "cosine") return ScheduleKind::cosine;
  if (name == "step") return ScheduleKind::step;
  throw Error(c10::str("unknown schedule '", name, "'; choose constant, linear, cosine or step"))
      .kind(ErrorKind::usage);
}

Schedule::Schedule(const ScheduleOptions& options) : options_(options) {
  const bool ends = options.kind == ScheduleKind::linear || options.kind == ScheduleKind::cosine;
  auto refuse = [](const char* name, std::int64_t value) {
    throw Error(c10::str(name, " must be at least 1, but is ", value)).kind(ErrorKind::usage);
  };
  if (ends && options.steps < 1) refuse("the number of steps of a schedule", options.steps);
  if (options.kind == ScheduleKind::step && options.step_size < 1) {
    refuse("the step size of a schedule", options.step_size);
  }
}

double Schedule::undampened(std::int64_t step) const {
  const double done =
      std::min(1.0, static_cast<double>(step) /
                        static_cast<double>(std::max<std::int64_t>(options_.steps, 1)));
  double factor = 1;
  switch (options_.kind) {
    case ScheduleKind::constant:
      break;
    case ScheduleKind::linear:
      factor = options_.start_factor + (options_.end_factor - options_.start_factor) * done;
      break;
    case ScheduleKind::cosine:
      factor = options_.end_factor +
               (1 - options_.end_factor) * (1 + std::cos(std::numbers::pi * done)) / 2;
      break;
    case ScheduleKind::step:
      factor = std::pow(options_.gamma, static_cast<double>(step / options_.step_size));
      break;
  }
  return factor;
}

double Schedule::factor(std::int64_t step) const {
  double factor = undampened(step);
  if (options_.warmup_steps < 1) return factor;
  const auto period = static_cast<double>(options_.warmup_steps);
  const double warmth = std::min(1.0, static_cast<double>(step + 1) / period);
  if (!options_.stays_at_first_warmup_rate) return factor * warmth;
  return factor * (step == 0 ? 1 : warmth) / period;
}

}  // namespace millrace
