// Private: one clip of a file into the fields "video" and "valid_frames".
#pragma once

#include "media_files.h"

#include <millrace/datasets/folders/video_folder.h>
#include <millrace/decoders/gif/gif.h>
#include <millrace/decoders/image/image.h>
#include <millrace/decoders/video/video.h>

#include <filesystem>
#include <string>
#include <vector>

namespace millrace {

class ClipLoader {
 public:
  // Throws if no clip could satisfy the options; `who` is the data set that has them.
  ClipLoader(const VideoFolderOptions& options, const char* who);

  void add_fields(std::vector<Field>& fields) const;
  // May be called from many threads at once. Errors have their path.
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

}  // namespace millrace
