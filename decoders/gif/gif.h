// Decodes animated GIFs: frames are composed with disposal, transparency, offsets and local
// palettes, with the same pixels as Pillow's `convert("RGB")`. Frames are selected as in video.
//
//   GifReader reader;
//   Status status = reader.open("a.gif");
//   ClipOptions options{.frames = FrameSelection::first(17), .height = 128, .width = 128};
//   std::vector<std::uint8_t> clip(reader.clip_bytes(options));
//   ClipResult result;
//   if (status.ok()) status = reader.decode(options, clip, result);
//
// A frame of another size than requested is cropped and resized as Pillow's resize() with BILINEAR.
// A reader is not thread-safe. Keep it for many files: it reuses its memory.
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
  // As stored in the file. In the timeline, delays of 10 ms or less count as 100 ms, as in
  // browsers.
  std::vector<int> delays_ms{};
  int loops = 1;  // number of times it plays; 0: forever
};

class GifReader {
 public:
  GifReader();
  ~GifReader();
  GifReader(GifReader&&) noexcept;
  GifReader& operator=(GifReader&&) noexcept;

  Status open(const std::filesystem::path& path, const DecodeLimits& limits = {});
  // The bytes must stay valid until another file is opened.
  Status open(std::span<const std::byte> bytes, const DecodeLimits& limits = {});

  // Exact: open() has read the whole file, without decompressing it.
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
