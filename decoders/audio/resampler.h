// Private: converts sample rate, format and channels in one pass of swresample. Contexts are kept
// between files: building a filter bank costs more than resampling two seconds of audio.
#pragma once

#include <millrace/decoders/container/libav.h>

#include <cstdint>
#include <list>
#include <memory>
#include <vector>

namespace millrace::detail {

template <typename T>
inline constexpr AVSampleFormat sample_format = AV_SAMPLE_FMT_NONE;
template <>
inline constexpr AVSampleFormat sample_format<float> = AV_SAMPLE_FMT_FLTP;
template <>
inline constexpr AVSampleFormat sample_format<std::int16_t> = AV_SAMPLE_FMT_S16P;

struct ResamplerSetup {
  int from_rate_hz = 0, to_rate_hz = 0;
  int from_channels = 0, to_channels = 0;
  int from_format = AV_SAMPLE_FMT_NONE, to_format = AV_SAMPLE_FMT_NONE;
  bool operator==(const ResamplerSetup&) const = default;
};

// A place to start resampling: output sample `output` is computed from input sample `input` at
// phase zero, far enough before the wanted sample that the filter's start-up has no effect on it.
struct ResamplerStart {
  std::int64_t input = 0, output = 0;
};
ResamplerStart aligned_start(const ResamplerSetup& setup, std::int64_t wanted_output);

class Resampler {
 public:
  const ResamplerSetup& setup() const { return setup_; }
  // Prepares for a new file; the first output samples are dropped.
  bool start(const ResamplerSetup& setup, const AVChannelLayout& from, std::int64_t to_drop);

  // Appends at to[c * stride + valid], up to `capacity`. A null frame flushes the resampler.
  template <typename T>
  void convert(const AVFrame* frame, T* to, std::int64_t stride, std::int64_t capacity,
               std::int64_t& valid);

 private:
  ResamplerHandle context_;
  ResamplerSetup setup_;
};

class ResamplerCache {
 public:
  // Returns a started resampler; null on failure.
  Resampler* get(const ResamplerSetup& setup, const AVChannelLayout& from, std::int64_t to_drop);

 private:
  static constexpr std::size_t most = 8;
  std::list<Resampler> all_;  // most recently used first
};

}  // namespace millrace::detail
