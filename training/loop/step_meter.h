// How fast a run goes, over its last seconds and as a whole. Only steps are counted: what
// validation, samples and files take is left out.
//
//   StepMeter meter;
//   meter.add({.seconds = 0.2, .items = 8, .wait_seconds = 0.001});
//   meter.recent().items_per_second;
#pragma once

#include <cstdint>
#include <deque>

namespace millrace {

class StepMeter {
 public:
  struct Step {
    double seconds = 0;
    std::int64_t items = 0;
    double wait_seconds = 0;       // of those, for batches
    double backward_seconds = 0;   // in backward passes, where the stage tells
    double optimizer_seconds = 0;  // in steps of optimizers and of the moving average
  };
  struct Rates {
    double steps_per_second = 0;
    double items_per_second = 0;
    double data_wait = 0, backward = 0, optimizer = 0;  // shares of the time
  };

  void add(const Step& step);
  Rates recent() const { return rates(marks_.front()); }
  // Without the first steps, in which memory is taken and code is loaded: five, or half of a run
  // that has fewer than ten.
  Rates whole() const;

 private:
  struct Mark {
    std::int64_t steps = 0;
    Step sum{};
  };
  Rates rates(const Mark& from) const;

  std::deque<Mark> marks_{Mark{}};  // the sums after each step of the last seconds
  std::deque<Mark> first_{Mark{}};  // and after each of the first steps
};

}  // namespace millrace
