// Selects frames of a clip; the same for video and GIF.
//
//   auto a = FrameSelection::first(17);              // the first 17 frames
//   auto b = FrameSelection::strided(17, 2);         // every second frame
//   auto c = FrameSelection::uniform(17);            // spread from the first to the last frame
//   auto d = FrameSelection::random_window(17, 2);   // every second frame from a random start
//   auto e = FrameSelection::at_fps(17, 8.0);        // the frame shown every 1/8 s
//   auto f = FrameSelection::at_times({0.5, 2.25});  // the frames shown at these seconds
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
  std::vector<double> times_seconds{};  // for by_time: seconds after the first frame

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

  // Returns an Error of kind usage if the numbers are invalid for every clip.
  Status check() const;
};

// The presentation time of each frame in seconds after the first, and the end of the last frame.
struct Timeline {
  std::vector<double> starts_seconds;
  double end_seconds = 0;
};

// Returns the indices of the selected frames in the timeline, in the order of the selection; fewer
// if the clip is too short. `random` is needed for random_window only.
Status select_frames(const FrameSelection& selection, const Timeline& timeline, Random* random,
                     std::vector<std::int64_t>& frames);

// What to do if the clip has fewer frames than requested.
enum class ShortClip {
  repeat_last,
  black,
  loop,
  error,
};

}  // namespace millrace
