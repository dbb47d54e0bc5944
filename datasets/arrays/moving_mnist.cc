#include <millrace/datasets/arrays/memmap.h>
#include <millrace/datasets/arrays/moving_mnist.h>
#include <millrace/datasets/captions/caption_reader.h>
#include <millrace/datasets/listing/file_bytes.h>
#include <millrace/datasets/listing/file_list.h>
#include <millrace/datasets/listing/printable.h>
#include <millrace/decoders/text/text.h>

#include <cstring>

namespace millrace {

using namespace detail;

namespace {

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& reason) {
  throw Error(reason).at(printable(path)).stage("memmap").kind(ErrorKind::usage);
}

// All rows of a .npy file, or of a raw file with rows of this shape.
Array map_rows(const std::filesystem::path& path, const Shape& row, std::int64_t rows) {
  Array all =
      has_extension(path.filename().native(), {"npy"})
          ? NpyDataset(path).rows()
          : RawMemmap(path, {.name = "values", .dtype = DType::uint8, .shape = row}, rows).rows();
  if (all.dtype() != DType::uint8) {
    refuse(path, "the array must be uint8, but is " + std::string(name_of(all.dtype())));
  }
  return all;
}

std::vector<std::string> read_lines(const std::filesystem::path& path) {
  FileBytes file;
  std::string text;
  Status status = file.read(path);
  if (status.ok()) status = decode_text(file.bytes(), text);
  if (!status.ok()) refuse(path, status.error().reason());
  std::vector<std::string> lines;
  for (std::string_view rest = text; !rest.empty();) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    lines.emplace_back(line);
  }
  return lines;
}

// Rotates one plane counter-clockwise, like numpy's rot90; in the result its pixels are `step`
// bytes apart. Planes rotated by 90 or 270 degrees must be square.
void turn_plane(const std::uint8_t* from, std::int64_t h, std::int64_t w, int quarters,
                std::uint8_t* to, std::int64_t step) {
  for (std::int64_t y = 0; y < h; ++y) {
    for (std::int64_t x = 0; x < w; ++x) {
      std::int64_t at = y * w + x;
      if (quarters == 1) at = x * w + (w - 1 - y);
      if (quarters == 2) at = (h - 1 - y) * w + (w - 1 - x);
      if (quarters == 3) at = (h - 1 - x) * w + y;
      to[(y * w + x) * step] = from[at];
    }
  }
}

}  // namespace

struct MovingMnist::Files {
  std::filesystem::path path;
  Array videos;  // [clips, frames, channels, height, width]
  Array digits;  // [clips, digits], or empty
  std::vector<std::string> texts;

  void map_videos(const MovingMnistOptions& options);
  void read_captions(const MovingMnistOptions& options);
};

void MovingMnist::Files::map_videos(const MovingMnistOptions& options) {
  if (options.frames < 1 || options.channels < 1 || options.size.is_own()) {
    refuse(path, "frames, size and channels must be at least 1");
  }
  videos =
      map_rows(path, {options.frames, options.channels, options.size.height, options.size.width},
               options.clips);
  Shape shape = videos.shape();
  if (shape.rank() == 4) videos = videos.reshaped({shape[0], shape[1], 1, shape[2], shape[3]});
  shape = videos.shape();
  if (shape.rank() != 5) {
    refuse(path,
           "the array must be [clips, frames, height, width] or [clips, frames, channels, "
           "height, width], but is " +
               to_string(shape));
  }
  if (shape[0] == 0) refuse(path, "there are no clips in it");
  if (options.clips >= 0 && options.clips != shape[0]) {
    refuse(path, "there are " + std::to_string(shape[0]) + " clips in it, but clips is " +
                     std::to_string(options.clips));
  }
  if (options.rotate && shape[3] != shape[4]) refuse(path, "only square frames can be rotated");
}

void MovingMnist::Files::read_captions(const MovingMnistOptions& options) {
  std::int64_t found = videos.shape()[0];
  if (!options.digits.empty()) {
    digits = map_rows(options.digits, {options.digits_per_clip}, -1);
    if (digits.shape().rank() != 2) {
      refuse(options.digits,
             "the array must be [clips, digits], but is " + to_string(digits.shape()));
    }
    found = digits.shape()[0];
  }
  if (!options.texts.empty()) {
    texts = read_lines(options.texts);
    found = static_cast<std::int64_t>(texts.size());
  }
  if (found != videos.shape()[0]) {
    refuse(options.digits.empty() ? options.texts : options.digits,
           "there are " + std::to_string(found) + " captions for " +
               std::to_string(videos.shape()[0]) + " clips");
  }
}

MovingMnist::MovingMnist(const std::filesystem::path& videos, MovingMnistOptions options)
    : options_(std::move(options)) {
  check(options_.size, "MovingMnist");
  if (!options_.digits.empty() && !options_.texts.empty()) {
    refuse(videos, "captions come from digits or from texts, not from both");
  }
  auto files = std::make_shared<Files>();
  files->path = videos;
  files->map_videos(options_);
  files->read_captions(options_);
  files_ = std::move(files);
  const Shape& shape = files_->videos.shape();
  Shape video = options_.layout == ClipLayout::thwc ? Shape{shape[1], shape[3], shape[4], shape[2]}
                                                    : Shape{shape[2], shape[1], shape[3], shape[4]};
  std::vector<Field> fields = {{.name = "video", .dtype = DType::uint8, .shape = video}};
  if (!options_.digits.empty() || !options_.texts.empty()) {
    add_caption_fields(fields, options_.captions);
  }
  schema_ = Schema(std::move(fields));
}

std::int64_t MovingMnist::size() const {
  return files_->videos.shape()[0];
}

std::string MovingMnist::caption(std::int64_t index) const {
  if (!files_->texts.empty()) return files_->texts[static_cast<std::size_t>(index)];
  std::string text;
  if (options_.digits.empty()) return text;
  for (std::uint8_t digit : files_->digits.row(index).as<const std::uint8_t>()) {
    if (!text.empty()) text += ' ';
    text += std::to_string(digit);
  }
  return text;
}

Status MovingMnist::load(std::int64_t index, const LoadContext& context, Sample& sample) const {
  const Array clip = files_->videos.row(index);
  const std::int64_t frames = clip.shape()[0], channels = clip.shape()[1];
  const std::int64_t h = clip.shape()[2], w = clip.shape()[3], plane = h * w;
  const int quarters = options_.rotate ? static_cast<int>(context.random("rotate").below(4)) : 0;
  const std::uint8_t* from = clip.as<const std::uint8_t>().data();
  std::uint8_t* to = sample.out("video").as<std::uint8_t>().data();
  const bool interleaved = options_.layout == ClipLayout::thwc;
  if (quarters == 0 && channels == 1) {
    std::memcpy(to, from, clip.bytes());
  } else {
    for (std::int64_t t = 0; t < frames; ++t) {
      for (std::int64_t c = 0; c < channels; ++c) {
        std::int64_t at = interleaved ? t * plane * channels + c : (c * frames + t) * plane;
        turn_plane(from + (t * channels + c) * plane, h, w, quarters, to + at,
                   interleaved ? channels : 1);
      }
    }
  }
  if (schema_.find("caption") < 0) return {};
  Status status = set_caption(options_.captions, caption(index), sample);
  if (!status.ok()) status.error().at(describe(index));
  return status;
}

std::string MovingMnist::describe(std::int64_t index) const {
  return printable(files_->path) + ", clip " + std::to_string(index);
}

}  // namespace millrace
