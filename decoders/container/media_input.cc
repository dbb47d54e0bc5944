#include "media_input.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace millrace::detail {
namespace {

// Demuxers that open other resources by name, or that read pictures and text as video.
bool opens_other_resources(const AVInputFormat* container) {
  static constexpr std::array names = {"hls",         "applehttp",
                                       "dash",        "concat",
                                       "concatf",     "rtsp",
                                       "rtp",         "sdp",
                                       "sap",         "imf",
                                       "image2",      "lavfi",
                                       "tedcaptions", "webm_dash_manifest",
                                       "image2pipe",  "ffmetadata",
                                       "vapoursynth", "bluray"};
  std::string_view all = container->name;  // e.g. "mov,mp4,m4a"
  while (!all.empty()) {
    std::string_view name = all.substr(0, all.find(','));
    if (std::ranges::find(names, name) != names.end()) return true;
    all.remove_prefix(std::min(all.size(), name.size() + 1));
  }
  return (container->flags & AVFMT_NOFILE) != 0;
}

int refuse_to_open(AVFormatContext*, AVIOContext**, const char*, int, AVDictionary**) {
  return AVERROR(EPERM);
}

bool is_container(const AVInputFormat* container, std::string_view name) {
  return std::string_view(container->name).find(name) != std::string_view::npos;
}

// Recognises the usual containers by their first bytes: probing all demuxers costs more than
// opening a short file.
const AVInputFormat* sniff_container(std::string_view start) {
  auto has = [&](std::size_t at, std::string_view tag) {
    return start.substr(at, tag.size()) == tag;
  };
  if (start.size() < 16) return nullptr;
  if (has(4, "ftyp")) return av_find_input_format("mov");
  if (has(0, "\x1A\x45\xDF\xA3")) return av_find_input_format("matroska");
  if (has(0, "OggS")) return av_find_input_format("ogg");
  if (has(0, "fLaC")) return av_find_input_format("flac");
  if (has(0, "RIFF") && has(8, "WAVE")) return av_find_input_format("wav");
  if (has(0, "RIFF") && has(8, "AVI ")) return av_find_input_format("avi");
  return nullptr;
}

std::string number(double value) {
  std::string text = std::to_string(value);
  if (text.find('.') != std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
  }
  return text;
}

}  // namespace

std::int64_t MediaInput::read_at(std::int64_t offset, std::span<std::uint8_t> to) const {
  const std::int64_t n = std::min(size_ - offset, static_cast<std::int64_t>(to.size()));
  if (n <= 0) return 0;
  if (file_ < 0) {
    std::memcpy(to.data(), bytes_.data() + offset, static_cast<std::size_t>(n));
    return n;
  }
  const ssize_t got = pread(file_, to.data(), static_cast<std::size_t>(n), offset);
  return got < 0 ? AVERROR(errno) : got;
}

int MediaInput::read(void* self, std::uint8_t* to, int size) {
  auto* input = static_cast<MediaInput*>(self);
  if (input->expired()) return AVERROR_EXIT;
  const std::int64_t n = input->read_at(input->offset_, {to, static_cast<std::size_t>(size)});
  if (n <= 0) return n == 0 ? AVERROR_EOF : static_cast<int>(n);
  input->offset_ += n;
  return static_cast<int>(n);
}

std::int64_t MediaInput::seek(void* self, std::int64_t offset, int whence) {
  auto* input = static_cast<MediaInput*>(self);
  switch (whence & ~AVSEEK_FORCE) {
    case AVSEEK_SIZE:
      return input->size_;
    case SEEK_CUR:
      offset += input->offset_;
      break;
    case SEEK_END:
      offset += input->size_;
      break;
    default:
      break;
  }
  if (offset < 0) return AVERROR(EINVAL);
  return input->offset_ = offset;
}

int MediaInput::interrupted(void* self) {
  return static_cast<MediaInput*>(self)->expired() ? 1 : 0;
}

Error MediaInput::error(const std::string& reason, int av_code) const {
  std::string detail = take_av_complaint();
  std::string text = reason;
  if (av_code == AVERROR_EXIT || expired()) {
    text += " within the deadline of " + number(limits_.deadline_seconds) + " s";
    detail.clear();
  } else if (!detail.empty()) {
    text += " (" + detail + ")";
  } else if (av_code < 0) {
    text += " (" + av_error_text(av_code) + ")";
  }
  Error error(std::move(text));
  error.stage(medium_ == AVMEDIA_TYPE_AUDIO ? "audio" : "video");
  if (source_.empty()) return error.hint("Check that the file is whole, and what it claims to be");
  return error.at(source_).hint("Check the file with: inspect " + source_);
}

Error MediaInput::name(Error error) const {
  if (error.stage().empty()) error.stage(medium_ == AVMEDIA_TYPE_AUDIO ? "audio" : "video");
  if (error.source().empty() && !source_.empty()) error.at(source_);
  return error;
}

Error MediaInput::beyond_limit(const std::string& what, double value, double limit,
                               const char* option) const {
  Error error(what + " is " + number(value) + ", more than the limit of " + number(limit));
  error.stage(medium_ == AVMEDIA_TYPE_AUDIO ? "audio" : "video");
  if (!source_.empty()) error.at(source_);
  return error.hint("Raise DecodeLimits::" + std::string(option) + " if you trust the file");
}

void MediaInput::close() {
  format_.reset();
  io_.reset();
  if (file_ >= 0) ::close(file_);
  file_ = -1;
  bytes_ = {};
  offset_ = size_ = 0;
  source_.clear();
}

Status MediaInput::open(const std::filesystem::path& path, AVMediaType medium,
                        const DecodeLimits& limits) {
  Status status = attach(path, medium, limits);
  return status.ok() ? open_container() : std::move(status);
}

Status MediaInput::open(std::span<const std::byte> bytes, AVMediaType medium,
                        const DecodeLimits& limits) {
  Status status = attach(bytes, medium, limits);
  return status.ok() ? open_container() : std::move(status);
}

Status MediaInput::attach(const std::filesystem::path& path, AVMediaType medium,
                          const DecodeLimits& limits) {
  close();
  medium_ = medium;
  limits_ = limits;
  source_ = path.string();
  restart_deadline();
  capture_av_log();
  take_av_complaint();
  // Non-blocking: a named pipe in a folder of clips must not hang the loader.
  file_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat about {};
  if (file_ < 0 || fstat(file_, &about) != 0) {
    return Error(std::string("cannot open (") + std::strerror(errno) + ")")
        .at(source_)
        .stage(medium == AVMEDIA_TYPE_AUDIO ? "audio" : "video")
        .hint("Check that it exists and may be read");
  }
  if (!S_ISREG(about.st_mode)) return error("not a regular file");
  size_ = about.st_size;
  return size_ == 0 ? Status(error("the file is empty")) : Status();
}

Status MediaInput::attach(std::span<const std::byte> bytes, AVMediaType medium,
                          const DecodeLimits& limits) {
  close();
  medium_ = medium;
  limits_ = limits;
  bytes_ = bytes;
  restart_deadline();
  capture_av_log();
  take_av_complaint();
  size_ = static_cast<std::int64_t>(bytes.size());
  return size_ == 0 ? Status(error("the file is empty")) : Status();
}

Status MediaInput::reopen() {
  format_.reset();
  io_.reset();
  offset_ = 0;
  return open_container();
}

Status MediaInput::open_container() {
  const std::string name = std::filesystem::path(source_).filename().string();
  constexpr int buffer_bytes = 32768;
  auto* buffer = static_cast<unsigned char*>(av_malloc(buffer_bytes));
  io_.reset(avio_alloc_context(buffer, buffer_bytes, 0, this, &read, nullptr, &seek));
  char start[16] = {};
  const std::int64_t known = read_at(0, {reinterpret_cast<std::uint8_t*>(start), sizeof start});
  const AVInputFormat* container =
      sniff_container({start, static_cast<std::size_t>(std::max<std::int64_t>(known, 0))});
  int code = 0;
  if (container == nullptr) {
    code = av_probe_input_buffer2(io_.get(), &container, name.c_str(), nullptr, 0, 0);
    if (code < 0) return error("not a known container", code);
  }
  if (opens_other_resources(container)) {
    return error(std::string("a ") + container->name + " file names other resources: refused");
  }
  format_.reset(avformat_alloc_context());
  format_->pb = io_.get();
  format_->flags |= AVFMT_FLAG_CUSTOM_IO;
  format_->io_open = refuse_to_open;
  format_->interrupt_callback = {&interrupted, this};
  // One more than the limit, so that a file with too many streams gets its own message.
  format_->max_streams = limits_.streams + 1;
  AVDictionary* options = nullptr;
  av_dict_set(&options, "protocol_whitelist", "file", 0);
  AVFormatContext* raw = format_.release();  // freed by the call when it fails
  code = avformat_open_input(&raw, name.c_str(), container, &options);
  av_dict_free(&options);
  if (code < 0) return error(std::string("cannot read the ") + container->name + " header", code);
  format_.reset(raw);
  return check_container();
}

// avformat_find_stream_info decodes frames to guess what these containers already state. It would
// take a third of the time of a decode.
bool MediaInput::headers_suffice() const {
  for (unsigned i = 0; i < format_->nb_streams; ++i) {
    const AVCodecParameters& p = *format_->streams[i]->codecpar;
    if (p.codec_type != medium_) continue;
    if (p.codec_id == AV_CODEC_ID_NONE) return false;
    if (medium_ == AVMEDIA_TYPE_VIDEO) {
      return (is_container(format_->iformat, "mp4") ||
              is_container(format_->iformat, "matroska")) &&
             p.width > 0 && p.height > 0;
    }
    // For AAC and Opus, container and stream may disagree.
    return p.sample_rate > 0 && p.ch_layout.nb_channels > 0 &&
           (is_container(format_->iformat, "wav") || is_container(format_->iformat, "flac") ||
            is_container(format_->iformat, "mp4") ||
            (is_container(format_->iformat, "ogg") &&
             (p.codec_id == AV_CODEC_ID_VORBIS || p.codec_id == AV_CODEC_ID_OPUS)));
  }
  return false;
}

// avformat_find_stream_info decodes frames, so the limit on their size must be set before.
int MediaInput::find_stream_info() {
  const unsigned count = format_->nb_streams;
  std::vector<AVDictionary*> options(count + 1);
  for (unsigned i = 0; i < count; ++i) {
    av_dict_set_int(&options[i], "max_pixels", limits_.frame_pixels, 0);
  }
  const int code = avformat_find_stream_info(format_.get(), count > 0 ? options.data() : nullptr);
  for (AVDictionary*& each : options) av_dict_free(&each);
  return code;
}

Status MediaInput::check_container() {
  if (static_cast<int>(format_->nb_streams) > limits_.streams) {
    return beyond_limit("the number of streams", format_->nb_streams, limits_.streams, "streams");
  }
  has_exact_times_ = is_container(format_->iformat, "mp4");
  tells_presentation_times_ = has_exact_times_ || is_container(format_->iformat, "matroska") ||
                              is_container(format_->iformat, "mpegts") ||
                              is_container(format_->iformat, "flv") ||
                              is_container(format_->iformat, "ogg");
  if (!headers_suffice()) {
    if (int code = find_stream_info(); code < 0) {
      return error("cannot find out what the streams are", code);
    }
    if (static_cast<int>(format_->nb_streams) > limits_.streams) {
      return beyond_limit("the number of streams", format_->nb_streams, limits_.streams, "streams");
    }
  }
  const double seconds = format_->duration == AV_NOPTS_VALUE
                             ? 0
                             : static_cast<double>(format_->duration) / AV_TIME_BASE;
  if (seconds > limits_.duration_seconds) {
    return beyond_limit("the duration in seconds", seconds, limits_.duration_seconds,
                        "duration_seconds");
  }
  return choose_stream();
}

Status MediaInput::choose_stream() {
  const int best = av_find_best_stream(format_.get(), medium_, -1, -1, nullptr, 0);
  if (best < 0) {
    return error(medium_ == AVMEDIA_TYPE_AUDIO ? "there is no audio stream"
                                               : "there is no video stream");
  }
  stream_ = static_cast<unsigned>(best);
  if ((stream()->disposition & AV_DISPOSITION_ATTACHED_PIC) != 0) {
    return error("there is no video stream, only a cover picture");
  }
  // libav's Ogg demuxer does not count cover pictures among its streams, and aborts the process on
  // a seek in such a stream.
  unsigned covers = 0;
  for (unsigned i = 0; i < format_->nb_streams; ++i) {
    if ((format_->streams[i]->disposition & AV_DISPOSITION_ATTACHED_PIC) != 0) ++covers;
  }
  if (is_container(format_->iformat, "ogg") && stream_ >= format_->nb_streams - covers) {
    return error("it has a cover picture before the stream");
  }
  // AVI numbers frames in decoding order, which is the presentation order unless frames are
  // reordered.
  if (is_container(format_->iformat, "avi") && stream()->codecpar->video_delay == 0) {
    tells_presentation_times_ = true;
  }
  for (unsigned i = 0; i < format_->nb_streams; ++i) {
    if (i != stream_) format_->streams[i]->discard = AVDISCARD_ALL;
  }
  return {};
}

}  // namespace millrace::detail
