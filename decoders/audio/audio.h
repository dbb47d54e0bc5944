// Audio to arrays: wav, flac, mp3, ogg, opus, m4a and whatever else FFmpeg reads. A window is
// decoded without reading the whole file, and is exactly that part of the whole: what encoders put
// before and after the sound is taken away, and resampling does not depend on where the window
// starts.
//
//   AudioReader reader;
//   Status status = reader.open("a.flac");
//   AudioOptions options{.start = 24'000, .samples = 48'000, .sample_rate_hz = 24'000, .channels =
//   1}; std::vector<float> sound(options.samples); AudioResult result; if (status.ok()) status =
//   reader.decode(options, sound, result);
//
// A reader serves one thread at a time; keep it: resampling filters are reused from file to file.
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
  // Per channel, as the headers say: exact for wav, flac, ogg, opus and m4a, a frame too many for
  // mp3 with an info header, else an estimate; 0: unknown, as in Ogg files of several streams.
  std::int64_t samples = 0;
  double duration_seconds = 0;
  std::string container{};
  std::string codec{};
};

struct AudioOptions {
  std::int64_t start = 0;    // in samples of the result
  std::int64_t samples = 0;  // per channel
  int sample_rate_hz = 0;    // 0: the file's own
  int channels = 0;          // 0: the file's own; 1: mixed
};

struct AudioResult {
  std::int64_t valid = 0;  // samples per channel that came from the file; the rest is silence
};

class AudioReader {
 public:
  AudioReader();
  ~AudioReader();
  AudioReader(AudioReader&&) noexcept;
  AudioReader& operator=(AudioReader&&) noexcept;

  Status open(const std::filesystem::path& path, const DecodeLimits& limits = {});
  // The bytes must stay as long as they are read from.
  Status open(std::span<const std::byte> bytes, const DecodeLimits& limits = {});
  const AudioInfo& info() const;

  // Fills [channels, samples]: float in [-1, 1], or 16-bit.
  Status decode(const AudioOptions& options, std::span<float> destination, AudioResult& result);
  Status decode(const AudioOptions& options, std::span<std::int16_t> destination,
                AudioResult& result);
  // All of it, however long: [channels, n] with n in `result.valid`. start and samples are ignored.
  Status decode_all(const AudioOptions& options, std::vector<float>& sound, AudioResult& result);

 private:
  class State;
  std::unique_ptr<State> state_;
};

// [channels, n] to a WAV file: float, or 16-bit. It appears under its name when it is complete.
Status write_wav(const std::filesystem::path& path, std::span<const float> sound, int channels,
                 int sample_rate_hz);
Status write_wav(const std::filesystem::path& path, std::span<const std::int16_t> sound,
                 int channels, int sample_rate_hz);

}  // namespace millrace
