// Private: sample rate, format and channels in one pass of swresample, with contexts kept between
// files: building a filter bank costs more than using it for two seconds of sound.
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

// Where to start so that output sample `output` comes of input sample `input` at phase zero, far
// enough before the wanted one that the filter has forgotten the start.
struct ResamplerStart {
  std::int64_t input = 0, output = 0;
};
ResamplerStart aligned_start(const ResamplerSetup& setup, std::int64_t wanted_output);

class Resampler {
 public:
  const ResamplerSetup& setup() const { return setup_; }
  // Ready for a new sound, of which the first samples of the result are left out.
  bool start(const ResamplerSetup& setup, const AVChannelLayout& from, std::int64_t to_drop);

  // Appends at to[c * stride + valid] up to `capacity`. A null frame brings what is still inside.
  template <typename T>
  void convert(const AVFrame* frame, T* to, std::int64_t stride, std::int64_t capacity,
               std::int64_t& valid);

 private:
  ResamplerHandle context_;
  ResamplerSetup setup_;
};

class ResamplerCache {
 public:
  // Started; null if it cannot be.
  Resampler* get(const ResamplerSetup& setup, const AVChannelLayout& from, std::int64_t to_drop);

 private:
  static constexpr std::size_t most = 8;
  std::list<Resampler> all_;  // the last used first
};

}  // namespace millrace::detail
