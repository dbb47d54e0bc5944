// Private: the state of a VideoReader.
#pragma once

#include "clip_writer.h"
#include "frame_convert.h"
#include "video_stream.h"

#include <millrace/decoders/container/media_input.h>
#include <millrace/decoders/video/video.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace millrace {

class VideoReader::State {
 public:
  Status start(const VideoOpenOptions& options);
  Status decode(const ClipOptions& options, std::span<std::uint8_t> destination, ClipResult& result,
                Random* random);
  Status scan();
  void close();

  detail::MediaInput input;
  VideoInfo info;
  Timeline timeline;

 private:
  struct Clip;  // the state of one decode
  Status choose(Clip& clip, Random* random);
  Status choose_first(Clip& clip);
  Status choose_by_time(Clip& clip);
  Status decode_by_time(Clip& clip);
  Status decode_by_count(Clip& clip);
  Status emit(Clip& clip, std::size_t target, AVFrame* frame);
  Status find_origin();
  bool has_ended(const AVFrame* last, std::int64_t ticks) const;

  detail::VideoStream stream_;
  detail::FrameConverter converter_;
  detail::Orientation orientation_;
  detail::FrameHandle current_, ahead_;
  std::optional<std::int64_t> origin_ticks_;  // of the first frame
  std::vector<std::int64_t> frame_ticks_;     // of all frames, once scanned
  bool scanned_ = false;
};

}  // namespace millrace
