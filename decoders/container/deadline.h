// Private: the time by which one decode must be done.
//
// Note [Deadlines]. No library of ours can be stopped from outside, so each asks where it calls us
// anyway: libav's demuxers in the interrupt callback, its decoders between packets and between the
// slices and tiles of a picture, libjpeg in its progress monitor, libpng and GIF between rows and
// frames. What was done in one piece and came too late is an error all the same, so that the
// answer does not depend on where a decoder happens to call.
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
