// Animated GIF to arrays: frames composed with disposal, transparency, offsets and local palettes,
// pixel for pixel as Pillow's `convert("RGB")` shows them. The selections are those of video.
//
//   GifReader reader;
//   Status status = reader.open("a.gif");
//   ClipOptions options{.frames = FrameSelection::first(17), .height = 128, .width = 128};
//   std::vector<std::uint8_t> clip(reader.clip_bytes(options));
//   ClipResult result;
//   if (status.ok()) status = reader.decode(options, clip, result);
//
// A frame that is not as large as asked is cropped and resized as Pillow's resize() with
// BILINEAR. A reader serves one thread at a time; keep it, its memory is reused.
#pragma once

#include <millrace/decoders/limits.h>
#include <millrace/decoders/video/clip.h>
#include <millrace/pipeline/base/error.h>
#include <millrace/pipeline/base/random.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

namespace millrace {

struct GifInfo {
  int height = 0;
  int width = 0;
  // As the file says. For the timeline, delays of 10 ms and less count as 100 ms, as in browsers.
  std::vector<int> delays_ms{};
  int loops = 1;  // how often it plays; 0: for ever
};

class GifReader {
 public:
  GifReader();
  ~GifReader();
  GifReader(GifReader&&) noexcept;
  GifReader& operator=(GifReader&&) noexcept;

  Status open(const std::filesystem::path& path, const DecodeLimits& limits = {});
  // The bytes must stay as long as they are read from.
  Status open(std::span<const std::byte> bytes, const DecodeLimits& limits = {});

  // Exact: the whole file has been walked through, without decompressing it.
  const GifInfo& info() const;
  const Timeline& timeline() const;
  std::size_t clip_bytes(const ClipOptions& options) const {
    return millrace::clip_bytes(options, info().height, info().width);
  }

  Status decode(const ClipOptions& options, std::span<std::uint8_t> destination, ClipResult& result,
                Random* random = nullptr);

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace millrace
