// Any bytes as a video: a result or an error, never a crash or a hang. The first byte chooses the
// selection of frames.
#include <millrace/decoders/video/video.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace millrace;
  if (size < 1) return 0;
  static constexpr DecodeLimits small{.frame_pixels = 512 * 512,
                                      .frames_kept = 64,
                                      .duration_seconds = 60,
                                      .decoded_bytes = 8 << 20,
                                      .deadline_seconds = 2};
  static const FrameSelection selections[] = {
      FrameSelection::first(5),       FrameSelection::strided(4, 7),
      FrameSelection::uniform(4),     FrameSelection::random_window(3, 2),
      FrameSelection::at_fps(4, 6.0), FrameSelection::at_times({2.0, 0.0, 0.7})};
  VideoReader reader;
  Status status = reader.open(std::as_bytes(std::span(data + 1, size - 1)), {.limits = small});
  if (!status.ok()) return 0;
  ClipOptions options{.frames = selections[data[0] % std::size(selections)],
                      .height = 16,
                      .width = 24,
                      .channels = (data[0] & 0x40) != 0 ? 1 : 3,
                      .layout = (data[0] & 0x80) != 0 ? ClipLayout::cthw : ClipLayout::thwc};
  std::vector<std::uint8_t> clip(reader.clip_bytes(options));
  ClipResult result;
  Random random(1, 0, data[0], "fuzz");
  // Twice: the second decode starts where the first one left the stream.
  for (int i = 0; i < 2; ++i) status = reader.decode(options, clip, result, &random);
  return 0;
}
