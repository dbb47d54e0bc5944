#include <millrace/decoders/video/frame_selection.h>

#include <algorithm>
#include <cmath>
#include <string>

namespace millrace {
namespace {

Error usage(std::string reason) {
  return Error(std::move(reason)).stage("frame selection").kind(ErrorKind::usage);
}

// The frame shown at `seconds`, or -1 after the end. Containers count time in ticks, so a time that
// was computed from the start of a frame may be smaller than it by a rounding error.
std::int64_t frame_at(const Timeline& timeline, double seconds) {
  constexpr double rounding_seconds = 1e-6;
  const auto& starts = timeline.starts_seconds;
  if (seconds >= timeline.end_seconds) return -1;
  auto after = std::upper_bound(starts.begin(), starts.end(), seconds + rounding_seconds);
  return std::max<std::int64_t>(0, after - starts.begin() - 1);
}

}  // namespace

FrameSelection FrameSelection::at_fps(std::int64_t count, double fps, double start_seconds) {
  FrameSelection selection{Kind::by_time, count, 1, {}};
  for (std::int64_t i = 0; i < count; ++i) {
    selection.times_seconds.push_back(start_seconds + static_cast<double>(i) / fps);
  }
  return selection;
}

Status FrameSelection::check() const {
  if (count < 1) return usage("`count` must be at least 1, but is " + std::to_string(count));
  if (stride < 1) return usage("`stride` must be at least 1, but is " + std::to_string(stride));
  if (kind != Kind::by_time) return {};
  if (static_cast<std::int64_t>(times_seconds.size()) != count) {
    return usage("`times_seconds` must have `count` (" + std::to_string(count) +
                 ") entries, but has " + std::to_string(times_seconds.size()));
  }
  for (double seconds : times_seconds) {
    if (!std::isfinite(seconds) || seconds < 0) {
      return usage("times must be finite and not negative, but one is " + std::to_string(seconds));
    }
  }
  return {};
}

Status select_frames(const FrameSelection& selection, const Timeline& timeline, Random* random,
                     std::vector<std::int64_t>& frames) {
  frames.clear();
  if (Status status = selection.check(); !status.ok()) return status;
  const auto total = static_cast<std::int64_t>(timeline.starts_seconds.size());
  if (selection.kind == FrameSelection::Kind::by_time) {
    for (double seconds : selection.times_seconds) {
      const std::int64_t frame = total > 0 ? frame_at(timeline, seconds) : -1;
      if (frame < 0) break;
      frames.push_back(frame);
    }
    return {};
  }
  const std::int64_t last = selection.count - 1;
  if (selection.kind == FrameSelection::Kind::uniform && total > selection.count) {
    for (std::int64_t i = 0; i <= last; ++i) {
      frames.push_back(last == 0 ? 0 : (2 * i * (total - 1) + last) / (2 * last));
    }
    return {};
  }
  std::int64_t start = 0;
  if (selection.kind == FrameSelection::Kind::random_window) {
    if (random == nullptr) return usage("a random window needs a Random");
    // Divides instead of multiplying: a huge stride must not overflow.
    const bool fits = total > 0 && (last == 0 || (total - 1) / last >= selection.stride);
    if (fits) start = random->below(total - last * selection.stride);
  }
  for (std::int64_t i = start; i < total && std::ssize(frames) <= last;) {
    frames.push_back(i);
    if (selection.stride >= total - i) break;
    i += selection.stride;
  }
  return {};
}

}  // namespace millrace
