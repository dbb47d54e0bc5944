#include "clip_loader.h"

#include <millrace/datasets/folders/image_folder.h>
#include <millrace/datasets/listing/file_bytes.h>
#include <millrace/datasets/listing/printable.h>

#include <algorithm>
#include <cstring>

namespace millrace::detail {

namespace {

FrameSelection selection_of(const VideoFolderOptions& options) {
  const std::int64_t count = std::max<std::int64_t>(options.frames, 1);
  switch (options.choice) {
    case FrameChoice::random_window:
      return FrameSelection::random_window(count, options.stride);
    case FrameChoice::uniform:
      return FrameSelection::uniform(count);
    case FrameChoice::at_fps:
      return FrameSelection::at_fps(count, options.fps);
    default:
      return FrameSelection::strided(count, options.stride);
  }
}

void check(const VideoFolderOptions& options, const char* who) {
  check(options.size, who);
  auto refuse = [&](const std::string& problem) {
    throw Error(std::string(who) + ": " + problem).kind(ErrorKind::usage);
  };
  if (options.frames < 0 || options.frames > options.limits.frames_kept) {
    refuse("frames must be 0 to " + std::to_string(options.limits.frames_kept) + ", but is " +
           std::to_string(options.frames));
  }
  if (options.stride < 1) {
    refuse("stride must be at least 1, but is " + std::to_string(options.stride));
  }
  if (options.frames == 0 && options.choice != FrameChoice::first) {
    refuse("all frames (frames = 0) can only be taken from the first on");
  }
  if (options.choice == FrameChoice::at_fps && !(options.fps > 0)) {
    refuse("at_fps needs fps above 0, but it is " + std::to_string(options.fps));
  }
  if (options.channels != 1 && options.channels != 3) {
    refuse("channels must be 1 or 3, but is " + std::to_string(options.channels));
  }
}

}  // namespace

ClipLoader::ClipLoader(const VideoFolderOptions& options, const char* who) : options_(options) {
  check(options, who);
  clip_ = {.frames = selection_of(options),
           .height = static_cast<int>(options.size.height),
           .width = static_cast<int>(options.size.width),
           .fit = options.fit,
           .channels = options.channels,
           .layout = options.layout,
           .short_clip = options.short_clip};
  if (Status status = clip_.frames.check(); !status.ok()) throw status.error();
}

void ClipLoader::add_fields(std::vector<Field>& fields) const {
  const std::int64_t t = options_.frames > 0 ? options_.frames : -1;
  const std::int64_t h = options_.size.is_own() ? -1 : options_.size.height;
  const std::int64_t w = options_.size.is_own() ? -1 : options_.size.width;
  Shape shape = options_.layout == ClipLayout::thwc ? Shape{t, h, w, options_.channels}
                                                    : Shape{options_.channels, t, h, w};
  fields.push_back({.name = "video", .dtype = DType::uint8, .shape = shape});
  fields.push_back({.name = "valid_frames", .dtype = DType::int64, .shape = {}});
}

// The content decides the format; the extension only says which decoder to try first.
Status ClipLoader::load(const std::filesystem::path& path, const LoadContext& context,
                        Sample& sample) {
  const std::string name = path.filename().native();
  const bool gif = has_extension(name, {"gif"});
  if (!gif && !(options_.pictures && has_extension(name, ImageFolder::extensions()))) {
    return at_file(load_video(path, context, sample), path);
  }
  FileBytes& file = FileBytes::of_this_thread();
  if (Status status = file.read(path); !status.ok()) return status;
  const bool is_gif = file.bytes().size() > 6 && std::memcmp(file.bytes().data(), "GIF8", 4) == 0;
  if (is_gif) return at_file(load_gif(file.bytes(), context, sample), path);
  if (gif && !options_.pictures) return at_file(load_video(path, context, sample), path);
  return at_file(load_picture(file.bytes(), sample), path);
}

template <typename Reader>
Status ClipLoader::decode(Reader& reader, const Timeline* timeline, const LoadContext& context,
                          Sample& sample) const {
  ClipOptions clip = clip_;
  if (timeline != nullptr) {
    auto frames = static_cast<std::int64_t>(timeline->starts_seconds.size());
    clip.frames.count = std::max<std::int64_t>((frames + options_.stride - 1) / options_.stride, 1);
    if (clip.frames.count > options_.limits.frames_kept) {
      return Error("it has " + std::to_string(frames) + " frames, more than the limit of " +
                   std::to_string(options_.limits.frames_kept))
          .stage("video")
          .hint("Raise DecodeLimits::frames_kept, or ask for a number of frames");
    }
  }
  const int height = reader.info().height, width = reader.info().width;
  Shape shape = clip_shape(clip, height, width);
  if (shape.elements() > options_.limits.decoded_bytes) {
    return Error("the clip would take " + std::to_string(shape.elements()) +
                 " bytes, more than the limit of " + std::to_string(options_.limits.decoded_bytes))
        .stage("video")
        .hint("Raise DecodeLimits::decoded_bytes, or ask for fewer frames or a smaller size");
  }
  Random random = context.random("window");
  ClipResult result;
  Status status =
      reader.decode(clip, sample.resize("video", shape).as<std::uint8_t>(), result, &random);
  sample.out("valid_frames").as<std::int64_t>()[0] = result.valid;
  return status;
}

Status ClipLoader::load_gif(std::span<const std::byte> bytes, const LoadContext& context,
                            Sample& sample) {
  auto reader = gifs_.lend();
  if (Status status = reader->open(bytes, options_.limits); !status.ok()) return status;
  return decode(*reader, options_.frames == 0 ? &reader->timeline() : nullptr, context, sample);
}

Status ClipLoader::load_video(const std::filesystem::path& path, const LoadContext& context,
                              Sample& sample) {
  auto reader = videos_.lend();
  Status status = reader->open(path, {.limits = options_.limits});
  Timeline timeline;
  if (status.ok() && options_.frames == 0) status = reader->timeline(timeline);
  if (status.ok()) {
    status = decode(*reader, options_.frames == 0 ? &timeline : nullptr, context, sample);
  }
  reader->close();
  return status;
}

// An image is a clip of one frame; the others are added as for any short clip.
Status ClipLoader::load_picture(std::span<const std::byte> bytes, Sample& sample) const {
  ImageInfo info;
  if (Status status = probe_image(bytes, info); !status.ok()) return status;
  if (info.width * info.height > options_.limits.frame_pixels) {
    return Error("it has " + std::to_string(info.width) + " x " + std::to_string(info.height) +
                 " pixels, more than the limit of " + std::to_string(options_.limits.frame_pixels))
        .stage("image");
  }
  const std::int64_t frames = std::max<std::int64_t>(options_.frames, 1);
  if (frames > 1 && options_.short_clip == ShortClip::error) {
    return Error("a picture is one frame, but " + std::to_string(frames) + " are needed")
        .stage("image");
  }
  const bool own = options_.size.is_own();
  const std::int64_t h = own ? info.height : options_.size.height;
  const std::int64_t w = own ? info.width : options_.size.width;
  const std::int64_t c = options_.channels;
  const bool planes = options_.layout == ClipLayout::cthw;
  Array frame = Array::empty(DType::uint8, planes ? Shape{c, h, w} : Shape{h, w, c});
  if (Status status = decode_picture(bytes, info, frame); !status.ok()) return status;

  Shape shape = planes ? Shape{c, frames, h, w} : Shape{frames, h, w, c};
  std::uint8_t* out = sample.resize("video", shape).as<std::uint8_t>().data();
  const std::uint8_t* pixels = frame.as<std::uint8_t>().data();
  const auto block = static_cast<std::size_t>(planes ? h * w : h * w * c);
  for (std::int64_t plane = 0; plane < (planes ? c : 1); ++plane, pixels += block) {
    for (std::int64_t t = 0; t < frames; ++t, out += block) {
      if (t > 0 && options_.short_clip == ShortClip::black) {
        std::memset(out, 0, block);
      } else {
        std::memcpy(out, pixels, block);
      }
    }
  }
  sample.out("valid_frames").as<std::int64_t>()[0] = 1;
  return {};
}

// Resizes the image to the size of the frames, with the same rule as for clips.
Status ClipLoader::decode_picture(std::span<const std::byte> bytes, const ImageInfo& info,
                                  const Array& frame) const {
  const bool planes = options_.layout == ClipLayout::cthw;
  const std::int64_t h = frame.shape()[planes ? 1 : 0], w = frame.shape()[planes ? 2 : 1];
  const std::int64_t c = options_.channels;
  ImageOptions image{.channels = options_.channels, .limits = options_.limits};
  if (options_.fit == Fit::centre_crop) {
    TransformOptions transform{.size = covering_side(info, {h, w}),
                               .layout = planes ? Layout::chw : Layout::hwc,
                               .image = image};
    return transform_image(bytes, transform, frame);
  }
  Array whole = Array::empty(DType::uint8, {info.height, info.width, c});
  if (Status status = decode_image(bytes, image, whole); !status.ok()) return status;
  Array small = Array::empty(DType::uint8, {h, w, c});
  if (Status status = resize_image(whole, {}, small); !status.ok()) return status;
  const std::uint8_t* from = small.as<std::uint8_t>().data();
  std::uint8_t* to = frame.as<std::uint8_t>().data();
  for (std::int64_t i = 0; i < h * w * c; ++i) to[planes ? i % c * h * w + i / c : i] = from[i];
  return {};
}

}  // namespace millrace::detail
