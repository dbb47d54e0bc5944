#include "video_reader.h"

#include <cmath>

namespace millrace {

using namespace detail;

VideoReader::VideoReader() : state_(std::make_unique<State>()) {}
VideoReader::~VideoReader() = default;
VideoReader::VideoReader(VideoReader&&) noexcept = default;
VideoReader& VideoReader::operator=(VideoReader&&) noexcept = default;

Status VideoReader::open(const std::filesystem::path& path, const VideoOpenOptions& options) {
  state_->close();
  Status status = state_->input.open(path, AVMEDIA_TYPE_VIDEO, options.limits);
  return status.ok() ? state_->start(options) : std::move(status);
}

Status VideoReader::open(std::span<const std::byte> bytes, const VideoOpenOptions& options) {
  state_->close();
  Status status = state_->input.open(bytes, AVMEDIA_TYPE_VIDEO, options.limits);
  return status.ok() ? state_->start(options) : std::move(status);
}

void VideoReader::close() {
  state_->close();
}

const VideoInfo& VideoReader::info() const {
  return state_->info;
}

Status VideoReader::decode(const ClipOptions& options, std::span<std::uint8_t> destination,
                           ClipResult& result, Random* random) {
  return state_->decode(options, destination, result, random);
}

Status VideoReader::timeline(Timeline& timeline) {
  if (!state_->input.has_container()) {
    return Error("no file is open").stage("video").kind(ErrorKind::usage);
  }
  state_->input.restart_deadline();
  if (Status status = state_->scan(); !status.ok()) return status;
  timeline = state_->timeline;
  return {};
}

void VideoReader::State::close() {
  stream_.close();
  input.close();
  info = {};
  timeline = {};
  origin_ticks_.reset();
  frame_ticks_.clear();
  scanned_ = false;
}

Status VideoReader::State::start(const VideoOpenOptions& options) {
  if (Status status = stream_.open(input, options.threads); !status.ok()) {
    input.close();
    return status;
  }
  const AVStream* stream = input.stream();
  const AVFormatContext* format = input.format();
  orientation_ = orientation_of(stream);
  info.height = stream->codecpar->height;
  info.width = stream->codecpar->width;
  if (orientation_.transpose) std::swap(info.height, info.width);
  if (orientation_.transpose) {
    info.rotation_degrees = orientation_.flip_x ? 90 : 270;
  } else {
    info.rotation_degrees = orientation_.flip_x && orientation_.flip_y ? 180 : 0;
  }
  info.container = format->iformat->name;
  info.codec = avcodec_get_name(stream->codecpar->codec_id);
  if (stream->duration != AV_NOPTS_VALUE && stream->duration > 0) {
    info.duration_seconds = static_cast<double>(stream->duration) * av_q2d(stream->time_base);
  } else if (format->duration != AV_NOPTS_VALUE && format->duration > 0) {
    info.duration_seconds = static_cast<double>(format->duration) / AV_TIME_BASE;
  }
  if (info.duration_seconds > input.limits().duration_seconds) {
    Error error = input.beyond_limit("the duration in seconds", info.duration_seconds,
                                     input.limits().duration_seconds, "duration_seconds");
    close();
    return error;
  }
  info.frames = stream->nb_frames;
  if (stream->avg_frame_rate.num > 0 && stream->avg_frame_rate.den > 0) {
    info.frames_per_second = av_q2d(stream->avg_frame_rate);
  } else if (info.frames > 0 && info.duration_seconds > 0) {
    info.frames_per_second = static_cast<double>(info.frames) / info.duration_seconds;
  }
  return {};
}

Status probe_video(const std::filesystem::path& path, VideoInfo& info, const DecodeLimits& limits) {
  VideoReader reader;
  Status status = reader.open(path, {.limits = limits});
  info = reader.info();
  return status;
}

Status probe_video(std::span<const std::byte> bytes, VideoInfo& info, const DecodeLimits& limits) {
  VideoReader reader;
  Status status = reader.open(bytes, {.limits = limits});
  info = reader.info();
  return status;
}

}  // namespace millrace
