// Which frames of a clip to take. The same for video and GIF.
//
//   FrameSelection::first(17)                the first 17 frames
//   FrameSelection::strided(17, 2)           every second frame
//   FrameSelection::uniform(17)              spread from the first frame to the last
//   FrameSelection::random_window(17, 2)     17 frames, every second, from a random start
//   FrameSelection::at_fps(17, 8.0)          what is on the screen every 1/8 s
//   FrameSelection::at_times({0.5, 2.25})    what is on the screen at these seconds
#pragma once

#include <millrace/pipeline/base/error.h>
#include <millrace/pipeline/base/random.h>

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace millrace {

struct FrameSelection {
  enum class Kind { by_stride, uniform, random_window, by_time };

  Kind kind = Kind::by_stride;
  std::int64_t count = 17;
  std::int64_t stride = 1;
  std::vector<double> times_seconds{};  // by_time: counted from the first frame

  static FrameSelection first(std::int64_t count) { return {Kind::by_stride, count, 1, {}}; }
  static FrameSelection strided(std::int64_t count, std::int64_t stride) {
    return {Kind::by_stride, count, stride, {}};
  }
  static FrameSelection uniform(std::int64_t count) { return {Kind::uniform, count, 1, {}}; }
  static FrameSelection random_window(std::int64_t count, std::int64_t stride = 1) {
    return {Kind::random_window, count, stride, {}};
  }
  static FrameSelection at_fps(std::int64_t count, double fps, double start_seconds = 0);
  static FrameSelection at_times(std::vector<double> seconds) {
    auto count = static_cast<std::int64_t>(seconds.size());
    return {Kind::by_time, count, 1, std::move(seconds)};
  }

  // An Error of kind usage if no clip could satisfy it.
  Status check() const;
};

// When each frame of a clip is shown, in seconds from the first, and when the last one ends.
struct Timeline {
  std::vector<double> starts_seconds;
  double end_seconds = 0;
};

// The frames to take, by their number in the timeline, in the order asked for. A clip that is too
// short gives fewer. `random` is needed for random_window only.
Status select_frames(const FrameSelection& selection, const Timeline& timeline, Random* random,
                     std::vector<std::int64_t>& frames);

// What to do when the clip has fewer frames than were asked for.
enum class ShortClip {
  repeat_last,
  black,
  loop,
  error,
};

}  // namespace millrace
