// Decodes the selected frames: finds their times, and reads the stream in that order.
#include "video_reader.h"

#include <algorithm>
#include <cmath>
#include <numeric>

extern "C" {
#include <libavutil/adler32.h>
#include <libavutil/imgutils.h>
}

namespace millrace {

using namespace detail;

struct VideoReader::State::Clip {
  const ClipOptions& options;
  ClipWriter writer;
  FrameSize stored_size;  // before rotation
  ClipResult& result;
  std::vector<std::int64_t> ticks{};   // presentation times of the selected frames; or:
  std::vector<std::int64_t> counts{};  // their numbers, if the times are not reliable
  std::vector<std::size_t> order{};    // slots of the clip, in order of presentation
  std::vector<char> filled{};
  std::int64_t written_ticks = VideoStream::never;
  std::size_t written_slot = 0;
};

namespace {

// The bytes of a frame as `ffmpeg -f framecrc` sums them.
std::uint32_t checksum(const AVFrame* frame) {
  const auto format = static_cast<AVPixelFormat>(frame->format);
  const int size = av_image_get_buffer_size(format, frame->width, frame->height, 1);
  if (size <= 0) return 0;
  std::vector<std::uint8_t> packed(static_cast<std::size_t>(size));
  av_image_copy_to_buffer(packed.data(), size, frame->data, frame->linesize, format, frame->width,
                          frame->height, 1);
  return static_cast<std::uint32_t>(av_adler32_update(0, packed.data(), packed.size()));
}

std::vector<std::size_t> ascending(const std::vector<std::int64_t>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return values[i]; });
  return order;
}

}  // namespace

Status VideoReader::State::decode(const ClipOptions& options, std::span<std::uint8_t> destination,
                                  ClipResult& result, Random* random) {
  result = {};
  if (!input.has_container()) return Error("no file is open").stage("video").kind(ErrorKind::usage);
  input.restart_deadline();
  take_av_complaint();
  stream_.reset_counts();
  stream_.want_only(nullptr);
  stream_.stop_after(VideoStream::never);
  FrameSize size;
  Status status =
      check_clip(options, input.limits(), {info.height, info.width}, destination.size(), size);
  if (!status.ok()) return input.name(std::move(status.error()));
  if (current_ == nullptr) current_.reset(av_frame_alloc());
  if (ahead_ == nullptr) ahead_.reset(av_frame_alloc());
  Clip clip{.options = options,
            .writer = ClipWriter(options, size, destination),
            .stored_size = size,
            .result = result};
  if (orientation_.transpose) std::swap(clip.stored_size.height, clip.stored_size.width);
  const auto count = static_cast<std::size_t>(options.frames.count);
  clip.filled.resize(count);
  result.times_seconds.resize(count);
  if (options.checksums) result.checksums.resize(count);
  status = choose(clip, random);
  if (status.ok()) status = clip.counts.empty() ? decode_by_time(clip) : decode_by_count(clip);
  av_frame_unref(current_.get());
  av_frame_unref(ahead_.get());
  stream_.want_only(nullptr);  // it points into `clip`
  if (!status.ok()) return status;
  result.decoded = stream_.decoded();
  result.damaged = stream_.damaged();
  result.valid = std::ranges::find(clip.filled, 0) - clip.filled.begin();
  result.times_seconds.resize(static_cast<std::size_t>(result.valid));
  if (options.checksums) result.checksums.resize(static_cast<std::size_t>(result.valid));
  if (result.valid == 0) return input.error("no frame could be decoded");
  if (options.strict && result.damaged > 0) {
    return input.error(std::to_string(result.damaged) + " damaged packets");
  }
  if (!clip.writer.fill_rest(static_cast<std::size_t>(result.valid), options.short_clip)) {
    return input.error("has " + std::to_string(result.valid) + " of the " +
                       std::to_string(options.frames.count) + " frames asked for");
  }
  return {};
}

Status VideoReader::State::choose(Clip& clip, Random* random) {
  const FrameSelection& selection = clip.options.frames;
  if (selection.kind == FrameSelection::Kind::by_stride) return choose_first(clip);
  if (selection.kind == FrameSelection::Kind::by_time) return choose_by_time(clip);
  if (Status status = scan(); !status.ok()) return status;
  std::vector<std::int64_t> numbers;
  if (Status status = select_frames(selection, timeline, random, numbers); !status.ok()) {
    return status;
  }
  if (!input.has_exact_times() && !input.tells_presentation_times()) {
    clip.counts = std::move(numbers);
    return {};
  }
  for (std::int64_t number : numbers) {
    clip.ticks.push_back(frame_ticks_[static_cast<std::size_t>(number)]);
  }
  if (std::ranges::is_sorted(clip.ticks)) stream_.want_only(&clip.ticks);
  return {};
}

Status VideoReader::State::choose_first(Clip& clip) {
  const FrameSelection& selection = clip.options.frames;
  // This many packets are held in memory at once.
  constexpr std::int64_t most_packets = 1024;
  std::vector<std::int64_t> first;
  if (selection.stride <= most_packets && selection.count * selection.stride <= most_packets) {
    if (Status status = stream_.go_to_start(); !status.ok()) return status;
    const auto needed = static_cast<std::size_t>((selection.count - 1) * selection.stride + 1);
    if (Status status = stream_.peek_times(needed, first); !status.ok()) return status;
  }
  for (std::size_t i = 0; i < first.size(); i += static_cast<std::size_t>(selection.stride)) {
    clip.ticks.push_back(first[i]);
  }
  if (!clip.ticks.empty()) {
    if (selection.stride > 1) stream_.want_only(&clip.ticks);
    return {};
  }
  std::int64_t number = 0;
  for (std::int64_t i = 0; i < selection.count; ++i) {
    clip.counts.push_back(number);
    if (__builtin_add_overflow(number, selection.stride, &number)) break;
  }
  return {};
}

Status VideoReader::State::choose_by_time(Clip& clip) {
  if (Status status = find_origin(); !status.ok()) return status;
  const double tick_seconds = av_q2d(input.stream()->time_base);
  const double last = clip.options.frames.times_seconds.empty()
                          ? 0
                          : std::ranges::max(clip.options.frames.times_seconds);
  if (last > 10 * input.limits().duration_seconds) {
    return input.beyond_limit("the latest time in seconds", last, input.limits().duration_seconds,
                              "duration_seconds");
  }
  // See frame_at() in frame_selection.cc: the time of a frame may be rounded to just before it.
  constexpr double rounding_seconds = 1e-6;
  for (double seconds : clip.options.frames.times_seconds) {
    clip.ticks.push_back(*origin_ticks_ + static_cast<std::int64_t>(std::floor(
                                              (seconds + rounding_seconds) / tick_seconds)));
  }
  return {};
}

Status VideoReader::State::find_origin() {
  if (origin_ticks_) return {};
  if (Status status = stream_.go_to_start(); !status.ok()) return status;
  std::vector<std::int64_t> first;
  if (Status status = stream_.peek_times(1, first); !status.ok()) return status;
  if (first.empty()) {
    const int code = stream_.next(ahead_.get());
    if (code != 1) return input.error("no frame could be decoded", code);
    first.push_back(shown_at(ahead_.get()));
  }
  origin_ticks_ = first.front();
  return {};
}

Status VideoReader::State::scan() {
  if (scanned_) return {};
  std::int64_t end_ticks = 0;
  Status status = stream_.scan_times(frame_ticks_, end_ticks);
  if (!status.ok()) return status;
  if (frame_ticks_.empty()) return input.error("there are no frames");
  const double tick_seconds = av_q2d(input.stream()->time_base);
  origin_ticks_ = frame_ticks_.front();
  timeline.starts_seconds.clear();
  for (std::int64_t ticks : frame_ticks_) {
    timeline.starts_seconds.push_back(static_cast<double>(ticks - *origin_ticks_) * tick_seconds);
  }
  timeline.end_seconds = static_cast<double>(end_ticks - *origin_ticks_) * tick_seconds;
  scanned_ = true;
  return {};
}

// Writes the frame into the slot of target `target`; targets are in order of presentation.
Status VideoReader::State::emit(Clip& clip, std::size_t target, AVFrame* frame) {
  const std::size_t slot = clip.order[target];
  const std::int64_t ticks = shown_at(frame);
  if (clip.written_ticks == ticks && clip.filled[clip.written_slot] != 0) {
    clip.writer.copy(clip.written_slot, slot);
    clip.result.times_seconds[slot] = clip.result.times_seconds[clip.written_slot];
    if (clip.options.checksums) {
      clip.result.checksums[slot] = clip.result.checksums[clip.written_slot];
    }
    clip.filled[slot] = 1;
    return {};
  }
  const std::int64_t pixels = std::int64_t{frame->width} * frame->height;
  if (pixels > input.limits().frame_pixels) {
    return input.beyond_limit("the number of pixels of a frame", static_cast<double>(pixels),
                              static_cast<double>(input.limits().frame_pixels), "frame_pixels");
  }
  if (clip.options.checksums) clip.result.checksums[slot] = checksum(frame);
  Planes planes;
  Status status =
      converter_.convert(*frame, clip.options.fit, clip.stored_size, clip.options.channels, planes);
  if (!status.ok()) return input.error(status.error().reason());
  clip.writer.put(slot, planes, orientation_);
  if (!origin_ticks_) origin_ticks_ = ticks;
  clip.result.times_seconds[slot] =
      static_cast<double>(ticks - *origin_ticks_) * av_q2d(input.stream()->time_base);
  clip.filled[slot] = 1;
  clip.written_ticks = ticks;
  clip.written_slot = slot;
  return {};
}

bool VideoReader::State::has_ended(const AVFrame* last, std::int64_t ticks) const {
  std::int64_t duration = frame_duration_ticks(last);
  if (duration <= 0 && info.frames_per_second > 0) {
    duration = std::llround(1 / info.frames_per_second / av_q2d(input.stream()->time_base));
  }
  return ticks >= shown_at(last) + std::max<std::int64_t>(duration, 1);
}

Status VideoReader::State::decode_by_count(Clip& clip) {
  if (Status status = stream_.go_to_start(); !status.ok()) return status;
  clip.order = ascending(clip.counts);
  std::int64_t number = 0;
  for (std::size_t i = 0; i < clip.order.size(); ++number) {
    const int code = stream_.next(ahead_.get());
    if (code < 0) return input.error("cannot decode", code);
    if (code == 0) break;
    if (number == 0) origin_ticks_ = shown_at(ahead_.get());
    for (; i < clip.order.size() && clip.counts[clip.order[i]] == number; ++i) {
      if (Status status = emit(clip, i, ahead_.get()); !status.ok()) return status;
    }
  }
  return {};
}

// For each wanted time, takes the last frame shown no later. `current_` is the last frame read,
// `ahead_` the one after it.
Status VideoReader::State::decode_by_time(Clip& clip) {
  clip.order = ascending(clip.ticks);
  if (clip.order.empty()) return {};
  stream_.stop_after(clip.ticks[clip.order.back()]);
  if (Status status = stream_.reach(clip.ticks[clip.order.front()]); !status.ok()) return status;
  bool has_current = false, has_ahead = false, ended = false;
  int retries = 0;
  for (std::size_t i = 0; i < clip.order.size();) {
    const std::int64_t wanted = clip.ticks[clip.order[i]];
    const bool exact = has_current && shown_at(current_.get()) == wanted;
    if (!exact && !has_ahead && !ended) {
      const int code = stream_.next(ahead_.get());
      if (code < 0) return input.error("cannot decode", code);
      (code == 1 ? has_ahead : ended) = true;
      continue;
    }
    if (!exact && has_ahead && shown_at(ahead_.get()) <= wanted) {
      std::swap(current_, ahead_);
      has_current = true;
      has_ahead = false;
      continue;
    }
    if (!has_current && has_ahead) {
      if (!stream_.began_at_start() && retries++ < 8) {
        has_ahead = false;
        if (Status status = stream_.reach_from_earlier(wanted); !status.ok()) return status;
        continue;
      }
      std::swap(current_, ahead_);  // a time before the first frame gets the first frame
      has_current = true;
      has_ahead = false;
    }
    if (!has_current) break;
    if (!exact && ended && !stream_.stopped_early() && has_ended(current_.get(), wanted)) break;
    if (Status status = emit(clip, i, current_.get()); !status.ok()) return status;
    ++i;
    if (ended || i == clip.order.size()) continue;
    const std::int64_t following = clip.ticks[clip.order[i]];
    if (stream_.key_frame_lies_between(following)) {
      has_current = has_ahead = false;
      if (Status status = stream_.reach(following); !status.ok()) return status;
    }
  }
  return {};
}

}  // namespace millrace
