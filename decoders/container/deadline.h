// Private: the time by which one decode must be done.
//
// Note [Deadlines]. The decoding libraries cannot be stopped from outside, so the deadline is
// checked where they call us: libav's demuxers in the interrupt callback, its decoders between
// packets and between slices and tiles of a picture, libjpeg in its progress monitor, libpng and
// GIF between rows and frames. A decode that finishes after the deadline without calling us is an
// error too, so the result does not depend on how often a library calls.
#pragma once

#include <chrono>

namespace millrace::detail {

class Deadline {
 public:
  Deadline() = default;
  explicit Deadline(double seconds) { start(seconds); }
  void start(double seconds) {
    end_ = Clock::now() +
           std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  }
  bool expired() const { return Clock::now() >= end_; }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point end_ = Clock::time_point::max();
};

}  // namespace millrace::detail
