// Decodes video: any container and codec of FFmpeg, from a file or from memory. Frames are selected
// by presentation time, so the result is right for variable frame rates, reordered frames and wrong
// headers.
//
//   VideoReader reader;
//   Status status = reader.open("clips/a.mp4");
//   ClipOptions options{.frames = FrameSelection::first(17), .height = 128, .width = 128};
//   std::vector<std::uint8_t> clip(reader.clip_bytes(options));
//   ClipResult result;
//   if (status.ok()) status = reader.decode(options, clip, result);
//
// A reader is not thread-safe. Keep it: several clips of a file need only one open(), and the next
// file reuses the buffers and the colour conversion.
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
#include <string>

namespace millrace {

// The content of the headers, which may be wrong; only decoding shows the truth.
struct VideoInfo {
  int height = 0;  // as shown, i.e. after rotation
  int width = 0;
  double duration_seconds = 0;   // 0: unknown
  double frames_per_second = 0;  // on average; 0: unknown
  std::int64_t frames = 0;       // 0: unknown
  int rotation_degrees = 0;      // clockwise rotation that makes the picture upright
  std::string container{};
  std::string codec{};
};

struct VideoOpenOptions {
  int threads = 1;  // for one clip; a loader decodes several clips in parallel instead
  DecodeLimits limits{};
};

class VideoReader {
 public:
  VideoReader();
  ~VideoReader();
  VideoReader(VideoReader&&) noexcept;
  VideoReader& operator=(VideoReader&&) noexcept;

  Status open(const std::filesystem::path& path, const VideoOpenOptions& options = {});
  // The bytes must stay valid until another file is opened.
  Status open(std::span<const std::byte> bytes, const VideoOpenOptions& options = {});
  void close();

  const VideoInfo& info() const;
  std::size_t clip_bytes(const ClipOptions& options) const {
    return millrace::clip_bytes(options, info().height, info().width);
  }

  // Fills `destination`, which has exactly clip_bytes(). Seeks forward or backward to the key frame
  // before the first selected frame, and stops decoding at the last one.
  Status decode(const ClipOptions& options, std::span<std::uint8_t> destination, ClipResult& result,
                Random* random = nullptr);

  // The presentation times of all frames. Reads the whole file, and decodes it only if the
  // container has no times. Cached until another file is opened.
  Status timeline(Timeline& timeline);

 private:
  class State;
  std::unique_ptr<State> state_;
};

Status probe_video(const std::filesystem::path& path, VideoInfo& info,
                   const DecodeLimits& limits = {});
Status probe_video(std::span<const std::byte> bytes, VideoInfo& info,
                   const DecodeLimits& limits = {});

}  // namespace millrace
