// The images of a folder: decoded, resized by the shorter side, randomly mirrored and
// center-cropped, straight into the batch.
//
//   ImageFolder photos("photos", {.size = 256, .flip = 0.5});
//
// The pixels equal those of Pillow with torchvision's Resize, RandomHorizontalFlip and CenterCrop.
// Whether an image is mirrored depends only on (seed, epoch, index).
#pragma once

#include <millrace/datasets/folders/pixel_size.h>
#include <millrace/datasets/listing/file_list.h>
#include <millrace/decoders/image/image_transform.h>
#include <millrace/pipeline/data/dataset.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace millrace {

struct ImageFolderOptions {
  PixelSize size = 256;     // of the result; 0: each image's own size
  std::int64_t resize = 0;  // shorter side before the crop, at least `size`; 0: the smallest
  int channels = 3;         // 1: grey, 3: RGB, 4: RGBA
  double flip = 0;          // probability of mirroring
  Layout layout = Layout::hwc;
  Filter filter = Filter::bilinear;
  AlphaRule alpha = AlphaRule::drop;
  std::array<std::uint8_t, 3> background{255, 255, 255};  // for AlphaRule::composite
  bool orient = true;                                     // apply the EXIF orientation
  bool tolerant = false;  // return what can be decoded of a damaged image
  bool fast = false;      // decode large JPEGs at reduced size: the pixels differ
  DecodeLimits limits{};
  FileListOptions files{};  // `extensions` replaces extensions() unless it is empty
};

// Fields: image uint8 [height, width, channels], or [channels, height, width] for Layout::chw.
class ImageFolder : public Dataset {
 public:
  explicit ImageFolder(const std::filesystem::path& folder, ImageFolderOptions options = {});

  std::int64_t size() const override { return files_.size(); }
  const Schema& schema() const override { return schema_; }
  Status load(std::int64_t index, const LoadContext& context, Sample& sample) const override;
  std::string describe(std::int64_t index) const override;
  std::vector<LeftOut> left_out() const override { return files_.left_out(); }
  // The size of the file in bytes.
  std::int64_t cost(std::int64_t index, std::int64_t epoch = 0) const override;

  const FileList& files() const { return files_; }
  const ImageFolderOptions& options() const { return options_; }
  static const std::vector<std::string>& extensions();

 private:
  Status load_whole(std::span<const std::byte> bytes, bool flip, Sample& sample) const;

  ImageFolderOptions options_;
  FileList files_;
  Schema schema_;
};

}  // namespace millrace
