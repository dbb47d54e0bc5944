// Any bytes as a GIF: a result or an error, never a crash or a hang.
#include <millrace/decoders/gif/gif.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace millrace;
  static constexpr DecodeLimits small{.frame_pixels = 512 * 512,
                                      .frames_kept = 64,
                                      .decoded_bytes = 8 << 20,
                                      .deadline_seconds = 2};
  GifReader reader;
  Status status = reader.open(std::as_bytes(std::span(data, size)), small);
  if (!status.ok()) return 0;
  for (int side : {0, 16}) {
    ClipOptions options{
        .frames = FrameSelection::uniform(side == 0 ? 3 : 8), .height = side, .width = side};
    std::vector<std::uint8_t> clip(reader.clip_bytes(options));
    ClipResult result;
    status = reader.decode(options, clip, result);
  }
  return 0;
}
