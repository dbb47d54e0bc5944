#include <millrace/decoders/audio/audio.h>
#include <millrace/pipeline/base/durable_file.h>

#include <bit>
#include <cstring>
#include <limits>
#include <string>

namespace millrace {
namespace {

static_assert(std::endian::native == std::endian::little, "WAV is little-endian");

void put(std::vector<std::uint8_t>& out, std::uint32_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
}

void put(std::vector<std::uint8_t>& out, const char* tag) {
  out.insert(out.end(), tag, tag + 4);
}

template <typename T>
Status write(const std::filesystem::path& path, std::span<const T> sound, int channels,
             int sample_rate_hz) {
  auto usage = [&](std::string reason) {
    return Error(std::move(reason)).at(path.string()).stage("wav").kind(ErrorKind::usage);
  };
  if (channels < 1 || channels > 65535 || sample_rate_hz < 1) {
    return usage("`channels` and `sample_rate_hz` must be positive, but are " +
                 std::to_string(channels) + " and " + std::to_string(sample_rate_hz));
  }
  const auto count = static_cast<std::size_t>(channels);
  if (sound.size() % count != 0) {
    return usage("the number of samples (" + std::to_string(sound.size()) +
                 ") is not a multiple of `channels` (" + std::to_string(channels) + ")");
  }
  constexpr bool is_float = std::is_floating_point_v<T>;
  const std::size_t data = sound.size_bytes();
  if (data > std::numeric_limits<std::uint32_t>::max() - 100) {
    return usage("a WAV file holds less than 4 GiB");
  }
  const std::size_t header = is_float ? 58 : 44;  // a file of floats also has a fact chunk
  const std::size_t padding = data % 2;
  std::vector<std::uint8_t> out;
  out.reserve(header + data + padding);
  put(out, "RIFF");
  put(out, static_cast<std::uint32_t>(header - 8 + data + padding), 4);
  put(out, "WAVE");
  put(out, "fmt ");
  put(out, is_float ? 18 : 16, 4);
  put(out, is_float ? 3 : 1, 2);
  put(out, static_cast<std::uint32_t>(channels), 2);
  put(out, static_cast<std::uint32_t>(sample_rate_hz), 4);
  const auto frame_bytes = static_cast<std::uint32_t>(count * sizeof(T));
  put(out, static_cast<std::uint32_t>(sample_rate_hz) * frame_bytes, 4);
  put(out, frame_bytes, 2);
  put(out, 8 * sizeof(T), 2);
  if (is_float) {
    put(out, 0, 2);
    put(out, "fact");
    put(out, 4, 4);
    put(out, static_cast<std::uint32_t>(sound.size() / count), 4);
  }
  put(out, "data");
  put(out, static_cast<std::uint32_t>(data), 4);
  const std::size_t start = out.size(), samples = sound.size() / count;
  out.resize(start + data + padding);
  for (std::size_t i = 0; i < samples; ++i) {
    for (std::size_t c = 0; c < count; ++c) {
      std::memcpy(out.data() + start + (i * count + c) * sizeof(T), &sound[c * samples + i],
                  sizeof(T));
    }
  }
  return try_write_durably(path, std::as_bytes(std::span(out)), "wav");
}

}  // namespace

Status write_wav(const std::filesystem::path& path, std::span<const float> sound, int channels,
                 int sample_rate_hz) {
  return write(path, sound, channels, sample_rate_hz);
}

Status write_wav(const std::filesystem::path& path, std::span<const std::int16_t> sound,
                 int channels, int sample_rate_hz) {
  return write(path, sound, channels, sample_rate_hz);
}

}  // namespace millrace
