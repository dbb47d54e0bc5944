// The pictures of a folder: decoded, resized so that the shorter side fits, cropped in the middle
// and mirrored by chance, straight into the batch.
//
//   ImageFolder photos("photos", {.size = 256, .flip = 0.5});
//   Loader loader(photos, {.batch_size = 32, .to_float = {{"image", ToFloat::unit()}}});
//
// Pixels are those of Pillow and torchvision's Resize, RandomHorizontalFlip and CenterCrop; whether
// a picture is mirrored depends on (seed, epoch, index) alone.
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
  PixelSize size = 256;     // of the result; 0: each picture as large as it is
  std::int64_t resize = 0;  // shorter side before the crop, at least `size`; 0: as small as fits
  int channels = 3;         // 1: grey, 3: RGB, 4: RGBA
  double flip = 0;          // the probability of a mirror image
  Layout layout = Layout::hwc;
  Filter filter = Filter::bilinear;
  AlphaRule alpha = AlphaRule::drop;
  std::array<std::uint8_t, 3> background{255, 255, 255};  // for AlphaRule::composite
  bool orient = true;                                     // as EXIF says
  bool tolerant = false;  // a damaged picture gives what it has, instead of an error
  bool fast = false;      // decode large JPEGs at a fraction of their size: other pixels
  DecodeLimits limits{};
  FileListOptions files{};  // `extensions`, if any, instead of ours
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
