// Any bytes as audio: a result or an error, never a crash or a hang. The first byte chooses where
// the window starts and what becomes of it.
#include <millrace/decoders/audio/audio.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace millrace;
  if (size < 1) return 0;
  static constexpr DecodeLimits small{
      .duration_seconds = 600, .decoded_bytes = 8 << 20, .deadline_seconds = 2};
  AudioReader reader;
  Status status = reader.open(std::as_bytes(std::span(data + 1, size - 1)), small);
  if (!status.ok()) return 0;
  AudioOptions options{.start = (data[0] & 15) * 3000,
                       .samples = 2000,
                       .sample_rate_hz = (data[0] & 0x40) != 0 ? 24'000 : 0,
                       .channels = (data[0] & 0x80) != 0 ? 1 : 0};
  const int channels = options.channels > 0 ? options.channels : reader.info().channels;
  std::vector<float> floats(static_cast<std::size_t>(2000 * channels));
  std::vector<std::int16_t> words(floats.size());
  AudioResult result;
  status = reader.decode(options, floats, result);
  status = reader.decode(options, words, result);
  return 0;
}
