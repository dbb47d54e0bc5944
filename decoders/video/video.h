// Video to arrays: any container and codec that FFmpeg reads, from a file or from bytes. Frames are
// chosen by when they are shown, so variable frame rates, reordered frames and wrong headers give
// the right ones.
//
//   VideoReader reader;
//   Status status = reader.open("clips/a.mp4");
//   ClipOptions options{.frames = FrameSelection::first(17), .height = 128, .width = 128};
//   std::vector<std::uint8_t> clip(reader.clip_bytes(options));
//   ClipResult result;
//   if (status.ok()) status = reader.decode(options, clip, result);
//
// A reader serves one thread at a time. Keep it: more clips of the same file need no new opening,
// and the next file finds buffers and colour conversion ready.
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

// What the headers claim. Only a decode tells what is true.
struct VideoInfo {
  int height = 0;  // as shown, i.e. after rotation
  int width = 0;
  double duration_seconds = 0;   // 0: unknown
  double frames_per_second = 0;  // on average; 0: unknown
  std::int64_t frames = 0;       // 0: unknown
  int rotation_degrees = 0;      // clockwise, to be seen upright
  std::string container{};
  std::string codec{};
};

struct VideoOpenOptions {
  int threads = 1;  // parallelism is across clips; more only helps one clip at a time
  DecodeLimits limits{};
};

class VideoReader {
 public:
  VideoReader();
  ~VideoReader();
  VideoReader(VideoReader&&) noexcept;
  VideoReader& operator=(VideoReader&&) noexcept;

  Status open(const std::filesystem::path& path, const VideoOpenOptions& options = {});
  // The bytes must stay as long as they are read from.
  Status open(std::span<const std::byte> bytes, const VideoOpenOptions& options = {});
  void close();

  const VideoInfo& info() const;
  std::size_t clip_bytes(const ClipOptions& options) const {
    return millrace::clip_bytes(options, info().height, info().width);
  }

  // Fills `destination`, which has exactly clip_bytes(). Forward or backward: it seeks to the key
  // frame before the first frame that is wanted, and decodes no further than the last.
  Status decode(const ClipOptions& options, std::span<std::uint8_t> destination, ClipResult& result,
                Random* random = nullptr);

  // When every frame is shown, by reading the whole file without decoding it where the container
  // has the times, else by decoding it. Kept until another file is opened.
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
