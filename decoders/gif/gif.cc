#include "gif_file.h"

#include <millrace/decoders/gif/gif.h>
#include <millrace/decoders/resize/clip_resize.h>
#include <millrace/decoders/video/clip_writer.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <numeric>
#include <string>

namespace millrace {

using namespace detail;

class GifReader::State {
 public:
  Status start(std::span<const std::uint8_t> bytes, const DecodeLimits& decode_limits);
  Status decode(const ClipOptions& options, std::span<std::uint8_t> destination, ClipResult& result,
                Random* random);
  Status fail(Error error) const {
    if (error.stage().empty()) error.stage("gif");
    if (error.hint().empty()) error.hint("Check that the file is whole: copy it again");
    if (!source.empty()) error.at(source);
    return error;
  }

  std::string source;
  std::vector<std::uint8_t> owned;
  GifInfo info;
  Timeline timeline;
  bool is_open = false;

 private:
  Status draw_all(const ClipOptions& options, const std::vector<std::int64_t>& numbers,
                  ClipWriter& writer, ClipResult& result);
  std::size_t first_needed(std::size_t wanted) const;

  DecodeLimits limits_;
  GifFile file_;
  GifCanvas canvas_;
  BoxResizer resizer_;
};

Status GifReader::State::start(std::span<const std::uint8_t> bytes,
                               const DecodeLimits& decode_limits) {
  is_open = false;
  limits_ = decode_limits;
  info = {};
  timeline = {};
  if (Status status = parse_gif(bytes, limits_, file_); !status.ok()) return fail(status.error());
  info.width = file_.width;
  info.height = file_.height;
  info.loops = file_.loops;
  std::int64_t milliseconds = 0;
  for (const GifFrame& frame : file_.frames) {
    info.delays_ms.push_back(frame.delay_ms);
    timeline.starts_seconds.push_back(static_cast<double>(milliseconds) / 1000);
    milliseconds += frame.delay_ms <= 10 ? 100 : frame.delay_ms;
  }
  timeline.end_seconds = static_cast<double>(milliseconds) / 1000;
  if (timeline.end_seconds > limits_.duration_seconds) {
    return fail(Error("the duration in seconds is " + std::to_string(timeline.end_seconds) +
                      ", more than the limit of " + std::to_string(limits_.duration_seconds))
                    .hint("Raise DecodeLimits::duration_seconds if you trust the file"));
  }
  is_open = true;
  return {};
}

// Each frame is drawn over the frames before it; they can be skipped if a frame covers everything.
std::size_t GifReader::State::first_needed(std::size_t wanted) const {
  for (std::size_t i = wanted; i > 0; --i) {
    const GifFrame& frame = file_.frames[i];
    if (frame.transparent < 0 && frame.disposal < 3 && frame.x == 0 && frame.y == 0 &&
        frame.width >= file_.width && frame.height >= file_.height) {
      return i;
    }
  }
  return 0;
}

Status GifReader::State::decode(const ClipOptions& options, std::span<std::uint8_t> destination,
                                ClipResult& result, Random* random) {
  result = {};
  if (!is_open) return Error("no file is open").stage("gif").kind(ErrorKind::usage);
  FrameSize size;
  Status status = check_clip(options, limits_, {info.height, info.width}, destination.size(), size);
  if (!status.ok()) return fail(status.error());
  std::vector<std::int64_t> numbers;
  status = select_frames(options.frames, timeline, random, numbers);
  if (!status.ok()) return fail(status.error());
  ClipWriter writer(options, size, destination);
  status = draw_all(options, numbers, writer, result);
  if (!status.ok()) return status;
  result.valid = std::ssize(numbers);
  for (std::int64_t number : numbers) {
    result.times_seconds.push_back(timeline.starts_seconds[static_cast<std::size_t>(number)]);
  }
  if (!writer.fill_rest(numbers.size(), options.short_clip)) {
    return fail(Error("has " + std::to_string(numbers.size()) + " of the " +
                      std::to_string(options.frames.count) + " frames asked for"));
  }
  return {};
}

Status GifReader::State::draw_all(const ClipOptions& options,
                                  const std::vector<std::int64_t>& numbers, ClipWriter& writer,
                                  ClipResult& result) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                      std::chrono::duration<double>(limits_.deadline_seconds));
  std::vector<std::size_t> order(numbers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return numbers[i]; });
  if (order.empty()) return {};
  const CropBox box = crop_for(options.fit, {info.height, info.width}, writer.size());
  canvas_.start(file_);
  std::size_t number = first_needed(static_cast<std::size_t>(numbers[order.front()]));
  for (std::size_t i = 0; i < order.size(); ++number) {
    if (Clock::now() >= end) {
      return fail(Error("cannot decode within the deadline of " +
                        std::to_string(limits_.deadline_seconds) + " s"));
    }
    if (!canvas_.draw(file_.frames[number], number == 0)) {
      return fail(Error("frame " + std::to_string(number) + ": the image data are broken"));
    }
    ++result.decoded;
    const auto here = static_cast<std::int64_t>(number);
    for (std::size_t same = i; i < order.size() && numbers[order[i]] == here; ++i) {
      if (i > same) {
        writer.copy(order[same], order[i]);
        continue;
      }
      Planes planes = resizer_.resize(canvas_.pixels().data(), static_cast<std::size_t>(info.width),
                                      box, writer.size(), options.channels);
      writer.put(order[i], planes, {});
    }
  }
  return {};
}

GifReader::GifReader() : state_(std::make_unique<State>()) {}
GifReader::~GifReader() = default;
GifReader::GifReader(GifReader&&) noexcept = default;
GifReader& GifReader::operator=(GifReader&&) noexcept = default;

Status GifReader::open(const std::filesystem::path& path, const DecodeLimits& limits) {
  state_->source = path.string();
  state_->is_open = false;
  std::error_code code;
  if (!std::filesystem::is_regular_file(path, code)) {
    return state_->fail(
        Error(code ? "cannot open (" + code.message() + ")" : "cannot open (not a regular file)"));
  }
  std::ifstream in(path, std::ios::binary);
  const auto size = static_cast<std::size_t>(std::filesystem::file_size(path, code));
  state_->owned.resize(size);
  in.read(reinterpret_cast<char*>(state_->owned.data()), static_cast<std::streamsize>(size));
  if (!in) return state_->fail(Error("cannot read"));
  return state_->start(state_->owned, limits);
}

Status GifReader::open(std::span<const std::byte> bytes, const DecodeLimits& limits) {
  state_->source.clear();
  return state_->start({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}, limits);
}

const GifInfo& GifReader::info() const {
  return state_->info;
}

const Timeline& GifReader::timeline() const {
  return state_->timeline;
}

Status GifReader::decode(const ClipOptions& options, std::span<std::uint8_t> destination,
                         ClipResult& result, Random* random) {
  return state_->decode(options, destination, result, random);
}

}  // namespace millrace
