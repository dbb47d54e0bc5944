// Private: decodes one clip of a file into the fields "video" and "valid_frames".
#pragma once

#include "media_files.h"

#include <millrace/datasets/folders/video_folder.h>
#include <millrace/decoders/gif/gif.h>
#include <millrace/decoders/image/image.h>
#include <millrace/decoders/video/video.h>

#include <filesystem>
#include <string>
#include <vector>

namespace millrace::detail {

class ClipLoader {
 public:
  // Throws if the options contradict each other; `who` is the data set's name for the message.
  ClipLoader(const VideoFolderOptions& options, const char* who);

  void add_fields(std::vector<Field>& fields) const;
  // Thread-safe. Errors have the path.
  Status load(const std::filesystem::path& path, const LoadContext& context, Sample& sample);

 private:
  template <typename Reader>
  Status decode(Reader& reader, const Timeline* timeline, const LoadContext& context,
                Sample& sample) const;
  Status load_gif(std::span<const std::byte> bytes, const LoadContext& context, Sample& sample);
  Status load_video(const std::filesystem::path& path, const LoadContext& context, Sample& sample);
  Status load_picture(std::span<const std::byte> bytes, Sample& sample) const;
  Status decode_picture(std::span<const std::byte> bytes, const ImageInfo& info,
                        const Array& frame) const;

  VideoFolderOptions options_;
  ClipOptions clip_;
  ReaderPool<VideoReader> videos_;
  ReaderPool<GifReader> gifs_;
};

}  // namespace millrace::detail
