// Measures training speed over the last ten seconds and over the whole run. Only the time of steps
// counts, without validation, samples and files.
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
    double wait_seconds = 0;       // waiting for batches, included in `seconds`
    double backward_seconds = 0;   // in backward passes; 0 if the stage does not measure it
    double optimizer_seconds = 0;  // in optimizer steps and EMA updates
  };
  struct Rates {
    double steps_per_second = 0;
    double items_per_second = 0;
    double data_wait = 0, backward = 0, optimizer = 0;  // fractions of the time
  };

  void add(const Step& step);
  Rates recent() const { return rates(marks_.front()); }
  // Without the warm-up steps, which allocate memory and load code: the first five, or the first
  // half of a run with fewer than ten steps.
  Rates whole() const;

 private:
  struct Mark {
    std::int64_t steps = 0;
    Step sum{};
  };
  Rates rates(const Mark& from) const;

  std::deque<Mark> marks_{Mark{}};  // sums after each step of the last ten seconds
  std::deque<Mark> first_{Mark{}};  // sums after each of the first steps
};

}  // namespace millrace
