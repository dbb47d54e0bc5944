#include "audio_stream.h"
#include "resampler.h"
#include "wav_read.h"

#include <millrace/decoders/audio/audio.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string>

namespace millrace {

using namespace detail;

class AudioReader::State {
 public:
  Status start();
  bool is_open() const { return info.sample_rate_hz > 0; }
  // Decodes up to `samples` values per channel into `to`; channels are `stride` apart. `valid` is
  // the number decoded.
  template <typename T>
  Status decode(const AudioOptions& options, T* to, std::int64_t stride, std::int64_t& valid);
  Status check(const AudioOptions& options, std::size_t destination, std::size_t item_bytes) const;
  int channels_of(const AudioOptions& options) const {
    return options.channels > 0 ? options.channels : info.channels;
  }
  int rate_of(const AudioOptions& options) const {
    return options.sample_rate_hz > 0 ? options.sample_rate_hz : info.sample_rate_hz;
  }

  MediaInput input;
  AudioInfo info;

 private:
  Status start_wav();
  Status start_stream();
  Status check_info();
  Status go_to(std::int64_t sample);
  int next() { return wav_ ? wav_->next(input, wav_frame_.get()) : stream_.next(frame_.get()); }

  std::optional<WavSamples> wav_;
  AudioStream stream_;
  FrameHandle wav_frame_;  // borrows its samples
  ResamplerCache resamplers_;
  FrameHandle frame_;
};

// After attach().
Status AudioReader::State::start() {
  info = {};
  wav_ = WavSamples::find(input);
  Status status = wav_ ? start_wav() : start_stream();
  if (status.ok()) status = check_info();
  if (!status.ok()) {
    info = {};
    input.close();
  }
  return status;
}

Status AudioReader::State::start_wav() {
  info.sample_rate_hz = wav_->sample_rate_hz();
  info.channels = wav_->channels();
  info.samples = wav_->length();
  info.container = "wav";
  info.codec = wav_->codec();
  if (wav_frame_ == nullptr) wav_frame_.reset(av_frame_alloc());
  return {};
}

Status AudioReader::State::start_stream() {
  if (Status status = input.open_container(); !status.ok()) return status;
  if (Status status = stream_.open(input); !status.ok()) return status;
  if (frame_ == nullptr) frame_.reset(av_frame_alloc());
  const AVStream* stream = input.stream();
  info.sample_rate_hz = stream_.sample_rate_hz();
  info.channels = stream_.channels();
  info.container = input.format()->iformat->name;
  info.codec = avcodec_get_name(stream->codecpar->codec_id);
  const AVRational sample{1, info.sample_rate_hz};
  if (stream_.length() >= 0) {
    info.samples = stream_.length();
  } else if (stream_.is_chained()) {
    info.samples = 0;  // unknown from the headers
  } else if (stream->duration != AV_NOPTS_VALUE && stream->duration > 0) {
    std::int64_t ticks = stream->duration;
    // The duration of mp3 includes the encoder's delay, which is removed from the decoded audio.
    if (stream->codecpar->codec_id == AV_CODEC_ID_MP3 && stream->start_time > 0) {
      ticks -= stream->start_time;
    }
    info.samples = av_rescale_q(ticks, stream->time_base, sample);
    // The same for Opus.
    if (stream->codecpar->codec_id == AV_CODEC_ID_OPUS && info.container == "ogg") {
      info.samples -= stream->codecpar->initial_padding;
    }
  } else if (input.format()->duration != AV_NOPTS_VALUE) {
    info.samples = av_rescale_q(input.format()->duration, microseconds, sample);
  }
  return {};
}

Status AudioReader::State::check_info() {
  const DecodeLimits& limits = input.limits();
  if (info.channels > limits.channels) {
    return input.beyond_limit("the number of channels", info.channels, limits.channels, "channels");
  }
  if (info.sample_rate_hz > limits.sample_rate_hz) {
    return input.beyond_limit("the sample rate in Hz", info.sample_rate_hz, limits.sample_rate_hz,
                              "sample_rate_hz");
  }
  info.duration_seconds = static_cast<double>(info.samples) / info.sample_rate_hz;
  if (info.duration_seconds > limits.duration_seconds) {
    return input.beyond_limit("the duration in seconds", info.duration_seconds,
                              limits.duration_seconds, "duration_seconds");
  }
  return {};
}

Status AudioReader::State::go_to(std::int64_t sample) {
  if (!wav_) return stream_.go_to(sample);
  wav_->go_to(sample);
  return {};
}

Status AudioReader::State::check(const AudioOptions& options, std::size_t destination,
                                 std::size_t item_bytes) const {
  auto usage = [](std::string reason) {
    return Error(std::move(reason)).stage("audio").kind(ErrorKind::usage);
  };
  if (!is_open()) return usage("no file is open");
  if (options.start < 0 || options.samples < 1) {
    return usage("`start` must not be negative and `samples` at least 1, but they are " +
                 std::to_string(options.start) + " and " + std::to_string(options.samples));
  }
  if (options.channels != 0 && options.channels != 1 && options.channels != info.channels) {
    return usage("`channels` must be 1 or the file's own (" + std::to_string(info.channels) +
                 "), but is " + std::to_string(options.channels));
  }
  if (options.sample_rate_hz < 0 || options.sample_rate_hz > input.limits().sample_rate_hz) {
    return input.beyond_limit("the sample rate in Hz", options.sample_rate_hz,
                              input.limits().sample_rate_hz, "sample_rate_hz");
  }
  const double seconds = static_cast<double>(options.samples) / rate_of(options);
  if (seconds > input.limits().duration_seconds) {
    return input.beyond_limit("the length of the window in seconds", seconds,
                              input.limits().duration_seconds, "duration_seconds");
  }
  const auto needed =
      static_cast<std::size_t>(options.samples) * static_cast<std::size_t>(channels_of(options));
  const auto most = static_cast<std::size_t>(input.limits().decoded_bytes);
  if (needed * item_bytes > most) {
    return input.beyond_limit("the number of bytes", static_cast<double>(needed * item_bytes),
                              static_cast<double>(most), "decoded_bytes");
  }
  if (needed != destination) {
    return usage("the destination must have " + std::to_string(needed) + " elements, but has " +
                 std::to_string(destination));
  }
  return {};
}

template <typename T>
Status AudioReader::State::decode(const AudioOptions& options, T* to, std::int64_t stride,
                                  std::int64_t& valid) {
  input.restart_deadline();
  take_av_complaint();
  valid = 0;
  const ResamplerSetup setup{.from_rate_hz = info.sample_rate_hz,
                             .to_rate_hz = rate_of(options),
                             .from_channels = info.channels,
                             .to_channels = channels_of(options),
                             .from_format = AV_SAMPLE_FMT_NONE,
                             .to_format = sample_format<T>};
  // The input sample to start from: from there the resampler goes through the same phases as it
  // would from the start of the file.
  const ResamplerStart start = aligned_start(setup, options.start);
  if (Status status = go_to(start.input); !status.ok()) return status;
  Resampler* resampler = nullptr;
  const AVFrame* frame = wav_ ? wav_frame_.get() : frame_.get();
  int code = 0;
  while (valid < options.samples && (code = next()) == 1) {
    if (frame->ch_layout.nb_channels != info.channels) {
      return input.error("the number of channels changes inside the file");
    }
    if (resampler == nullptr) {
      ResamplerSetup full = setup;
      full.from_format = frame->format;
      resampler = resamplers_.get(full, frame->ch_layout, options.start - start.output);
      if (resampler == nullptr) return input.error("cannot resample");
    }
    resampler->convert(frame, to, stride, options.samples, valid);
  }
  if (code < 0) return input.error("cannot decode", code);
  if (resampler != nullptr && valid < options.samples) {
    resampler->convert<T>(nullptr, to, stride, options.samples, valid);
  }
  if (frame_ != nullptr) av_frame_unref(frame_.get());
  return {};
}

AudioReader::AudioReader() : state_(std::make_unique<State>()) {}
AudioReader::~AudioReader() = default;
AudioReader::AudioReader(AudioReader&&) noexcept = default;
AudioReader& AudioReader::operator=(AudioReader&&) noexcept = default;

Status AudioReader::open(const std::filesystem::path& path, const DecodeLimits& limits) {
  state_->info = {};
  Status status = state_->input.attach(path, AVMEDIA_TYPE_AUDIO, limits);
  return status.ok() ? state_->start() : std::move(status);
}

Status AudioReader::open(std::span<const std::byte> bytes, const DecodeLimits& limits) {
  state_->info = {};
  Status status = state_->input.attach(bytes, AVMEDIA_TYPE_AUDIO, limits);
  return status.ok() ? state_->start() : std::move(status);
}

const AudioInfo& AudioReader::info() const {
  return state_->info;
}

namespace {

template <typename T>
void silence_rest(std::span<T> sound, std::int64_t samples, std::int64_t valid) {
  for (std::size_t at = 0; at < sound.size(); at += static_cast<std::size_t>(samples)) {
    std::fill(sound.begin() + static_cast<std::ptrdiff_t>(at) + valid,
              sound.begin() + static_cast<std::ptrdiff_t>(at) + samples, T{});
  }
}

}  // namespace

Status AudioReader::decode(const AudioOptions& options, std::span<float> destination,
                           AudioResult& result) {
  result = {};
  Status status = state_->check(options, destination.size(), sizeof(float));
  if (status.ok()) {
    status = state_->decode(options, destination.data(), options.samples, result.valid);
  }
  if (status.ok()) silence_rest(destination, options.samples, result.valid);
  return status;
}

Status AudioReader::decode(const AudioOptions& options, std::span<std::int16_t> destination,
                           AudioResult& result) {
  result = {};
  Status status = state_->check(options, destination.size(), sizeof(std::int16_t));
  if (status.ok()) {
    status = state_->decode(options, destination.data(), options.samples, result.valid);
  }
  if (status.ok()) silence_rest(destination, options.samples, result.valid);
  return status;
}

Status AudioReader::decode_all(const AudioOptions& options, std::vector<float>& sound,
                               AudioResult& result) {
  result = {};
  sound.clear();
  if (!state_->is_open()) {
    return Error("no file is open").stage("audio").kind(ErrorKind::usage);
  }
  AudioOptions part = options;
  const int rate = state_->rate_of(options);
  const auto channels = static_cast<std::size_t>(state_->channels_of(options));
  part.start = 0;
  // The length in the header may be too short: then decode again into twice the memory.
  part.samples = std::llround(std::ceil(state_->info.duration_seconds * rate)) + rate;
  for (;; part.samples *= 2) {
    const double most_seconds = state_->input.limits().duration_seconds;
    part.samples = std::min<std::int64_t>(part.samples, std::llround(most_seconds * rate));
    sound.resize(static_cast<std::size_t>(part.samples) * channels);
    Status status = decode(part, sound, result);
    if (!status.ok()) return status;
    if (result.valid < part.samples) break;
    if (static_cast<double>(part.samples) >= most_seconds * rate) {
      return state_->input.beyond_limit("the duration in seconds", most_seconds, most_seconds,
                                        "duration_seconds");
    }
  }
  for (std::size_t c = 1; c < channels; ++c) {
    std::memmove(sound.data() + c * static_cast<std::size_t>(result.valid),
                 sound.data() + c * static_cast<std::size_t>(part.samples),
                 static_cast<std::size_t>(result.valid) * sizeof(float));
  }
  sound.resize(static_cast<std::size_t>(result.valid) * channels);
  return {};
}

}  // namespace millrace
