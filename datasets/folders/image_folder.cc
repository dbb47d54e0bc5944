#include "media_files.h"

#include <millrace/datasets/folders/image_folder.h>
#include <millrace/datasets/listing/file_bytes.h>
#include <millrace/datasets/listing/printable.h>

#include <algorithm>
#include <cstring>

namespace millrace {

using namespace detail;

namespace {

Schema schema_of(const ImageFolderOptions& options) {
  check(options.size, "ImageFolder");
  auto refuse = [](const std::string& problem) {
    throw Error("ImageFolder: " + problem).kind(ErrorKind::usage);
  };
  if (options.channels != 1 && options.channels != 3 && options.channels != 4) {
    refuse("channels must be 1, 3 or 4, but is " + std::to_string(options.channels));
  }
  if (options.flip < 0 || options.flip > 1) {
    refuse("flip is a probability, 0 to 1, but is " + std::to_string(options.flip));
  }
  if (options.resize != 0 && options.size.is_own()) refuse("resize needs a size");
  if (options.resize != 0 && options.resize < std::max(options.size.height, options.size.width)) {
    refuse("resize (" + std::to_string(options.resize) + ") must be at least as large as size");
  }
  std::int64_t h = options.size.is_own() ? -1 : options.size.height;
  std::int64_t w = options.size.is_own() ? -1 : options.size.width;
  Shape shape =
      options.layout == Layout::hwc ? Shape{h, w, options.channels} : Shape{options.channels, h, w};
  return {{.name = "image", .dtype = DType::uint8, .shape = shape}};
}

ImageOptions image_options(const ImageFolderOptions& options) {
  return {.channels = options.channels,
          .alpha = options.alpha,
          .background = options.background,
          .orient = options.orient,
          .tolerant = options.tolerant,
          .limits = options.limits};
}

}  // namespace

const std::vector<std::string>& ImageFolder::extensions() {
  static const std::vector<std::string> known = {"jpg", "jpeg", "png", "webp",
                                                 "bmp", "gif",  "tif", "tiff"};
  return known;
}

ImageFolder::ImageFolder(const std::filesystem::path& folder, ImageFolderOptions options)
    : options_(std::move(options)),
      files_(list_media(folder, options_.files, extensions())),
      schema_(schema_of(options_)) {
  log_left_out(printable(folder), files_.left_out());
  refuse_empty(files_, "pictures",
               options_.files.extensions.empty() ? extensions() : options_.files.extensions);
}

Status ImageFolder::load(std::int64_t index, const LoadContext& context, Sample& sample) const {
  const std::filesystem::path path = files_.path(index);
  FileBytes& file = FileBytes::of_this_thread();
  if (Status status = file.read(path); !status.ok()) return status;
  const bool flip = options_.flip > 0 && context.random("flip").uniform() < options_.flip;
  if (options_.size.is_own()) return at_file(load_whole(file.bytes(), flip, sample), path);
  TransformOptions transform{.size = options_.resize,
                             .filter = options_.filter,
                             .flip = flip,
                             .layout = options_.layout,
                             .fast = options_.fast,
                             .image = image_options(options_)};
  if (options_.resize == 0 && options_.size.height != options_.size.width) {
    ImageInfo info;
    if (Status status = probe_image(file.bytes(), info); !status.ok()) {
      return at_file(std::move(status), path);
    }
    if (!options_.orient && info.orientation >= 5) std::swap(info.width, info.height);
    transform.size = covering_side(info, options_.size);
  }
  return at_file(transform_image(file.bytes(), transform, sample.out("image")), path);
}

// Keeps the image's own size. transform_image() still mirrors it and changes the layout.
Status ImageFolder::load_whole(std::span<const std::byte> bytes, bool flip, Sample& sample) const {
  ImageInfo info;
  if (Status status = probe_image(bytes, info); !status.ok()) return status;
  if (!options_.orient && info.orientation >= 5) std::swap(info.width, info.height);
  const DecodeLimits& limits = options_.limits;
  if (info.width > limits.image_side || info.height > limits.image_side ||
      info.width * info.height > limits.image_pixels) {
    return Error("it has " + std::to_string(info.width) + " x " + std::to_string(info.height) +
                 " pixels, more than the limits allow")
        .stage("image")
        .hint("Raise DecodeLimits::image_pixels if you trust the file");
  }
  Shape shape = options_.layout == Layout::hwc ? Shape{info.height, info.width, options_.channels}
                                               : Shape{options_.channels, info.height, info.width};
  TransformOptions transform{.size = std::min(info.width, info.height),
                             .flip = flip,
                             .layout = options_.layout,
                             .image = image_options(options_)};
  return transform_image(bytes, transform, sample.resize("image", shape));
}

std::int64_t ImageFolder::cost(std::int64_t index, std::int64_t /*epoch*/) const {
  return cost_of(files_, index);
}

std::string ImageFolder::describe(std::int64_t index) const {
  return printable(files_.path(index));
}

}  // namespace millrace
