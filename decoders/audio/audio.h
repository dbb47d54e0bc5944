// Decodes audio: wav, flac, mp3, ogg, opus, m4a and the other formats of FFmpeg. A window is
// decoded without reading the whole file, and equals the same part of the whole decoded file:
// encoder delay and padding are removed, and resampling does not depend on where the window starts.
//
//   AudioReader reader;
//   Status status = reader.open("a.flac");
//   AudioOptions options{.start = 24'000, .samples = 48'000, .sample_rate_hz = 24'000};
//   options.channels = 1;
//   std::vector<float> sound(options.samples);
//   AudioResult result;
//   if (status.ok()) status = reader.decode(options, std::span<float>(sound), result);
//
// A reader is not thread-safe. Keep it for many files: it reuses the resampling filters.
#pragma once

#include <millrace/decoders/limits.h>
#include <millrace/pipeline/base/error.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace millrace {

struct AudioInfo {
  int sample_rate_hz = 0;
  int channels = 0;
  // Samples per channel according to the headers: exact for wav, flac, ogg, opus and m4a, one frame
  // too many for mp3 with an info header, else an estimate. 0: unknown, e.g. in chained Ogg files.
  std::int64_t samples = 0;
  double duration_seconds = 0;
  std::string container{};
  std::string codec{};
};

struct AudioOptions {
  std::int64_t start = 0;    // in output samples
  std::int64_t samples = 0;  // per channel
  int sample_rate_hz = 0;    // 0: that of the file
  int channels = 0;          // 0: those of the file; 1: a mono mix
};

struct AudioResult {
  std::int64_t valid = 0;  // number of samples per channel from the file; the rest is silence
};

class AudioReader {
 public:
  AudioReader();
  ~AudioReader();
  AudioReader(AudioReader&&) noexcept;
  AudioReader& operator=(AudioReader&&) noexcept;

  Status open(const std::filesystem::path& path, const DecodeLimits& limits = {});
  // The bytes must stay valid until another file is opened.
  Status open(std::span<const std::byte> bytes, const DecodeLimits& limits = {});
  const AudioInfo& info() const;

  // Fills [channels, samples]: float in [-1, 1], or 16-bit integers.
  Status decode(const AudioOptions& options, std::span<float> destination, AudioResult& result);
  Status decode(const AudioOptions& options, std::span<std::int16_t> destination,
                AudioResult& result);
  // Decodes the whole file: [channels, n] with n in `result.valid`. Ignores start and samples.
  Status decode_all(const AudioOptions& options, std::vector<float>& sound, AudioResult& result);

 private:
  class State;
  std::unique_ptr<State> state_;
};

// Writes [channels, n] to a WAV file of floats or 16-bit integers. The file appears under its name
// only when it is complete and on the disk.
Status write_wav(const std::filesystem::path& path, std::span<const float> sound, int channels,
                 int sample_rate_hz);
Status write_wav(const std::filesystem::path& path, std::span<const std::int16_t> sound,
                 int channels, int sample_rate_hz);

}  // namespace millrace
