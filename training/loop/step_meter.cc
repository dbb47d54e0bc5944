#include <millrace/training/loop/step_meter.h>

#include <algorithm>

namespace millrace {

namespace {

constexpr double recent_seconds = 10;
constexpr std::int64_t first_steps = 5;

}  // namespace

void StepMeter::add(const Step& step) {
  Mark mark = marks_.back();
  ++mark.steps;
  mark.sum.seconds += step.seconds;
  mark.sum.items += step.items;
  mark.sum.wait_seconds += step.wait_seconds;
  mark.sum.backward_seconds += step.backward_seconds;
  mark.sum.optimizer_seconds += step.optimizer_seconds;
  marks_.push_back(mark);
  if (mark.steps <= first_steps) first_.push_back(mark);
  while (marks_.size() > 2 && mark.sum.seconds - marks_[1].sum.seconds > recent_seconds) {
    marks_.pop_front();
  }
}

StepMeter::Rates StepMeter::rates(const Mark& from) const {
  const Mark& to = marks_.back();
  const double seconds = std::max(to.sum.seconds - from.sum.seconds, 1e-9);
  return {.steps_per_second = static_cast<double>(to.steps - from.steps) / seconds,
          .items_per_second = static_cast<double>(to.sum.items - from.sum.items) / seconds,
          .data_wait = (to.sum.wait_seconds - from.sum.wait_seconds) / seconds,
          .backward = (to.sum.backward_seconds - from.sum.backward_seconds) / seconds,
          .optimizer = (to.sum.optimizer_seconds - from.sum.optimizer_seconds) / seconds};
}

StepMeter::Rates StepMeter::whole() const {
  const std::int64_t left_out = std::min(first_steps, marks_.back().steps / 2);
  return rates(first_[static_cast<std::size_t>(left_out)]);
}

}  // namespace millrace
