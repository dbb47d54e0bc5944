// Private: one open container and the stream of it that is wanted, over a file or bytes in memory.
// Shared by video and audio.
//
// Note [Hostile containers]. All bytes come through our own read callback: FFmpeg opens nothing by
// name, and its own request to open more (playlists, external tracks) is refused. The demuxers
// whose work is to open other resources are not even started. Limits are checked as soon as the
// header is read, and the deadline in each callback.
#pragma once

#include "deadline.h"
#include "libav.h"

#include <millrace/decoders/limits.h>
#include <millrace/pipeline/base/error.h>

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

namespace millrace::detail {

class MediaInput {
 public:
  MediaInput() = default;
  ~MediaInput() { close(); }
  MediaInput(const MediaInput&) = delete;
  MediaInput& operator=(const MediaInput&) = delete;

  Status open(const std::filesystem::path& path, AVMediaType medium, const DecodeLimits& limits);
  // The bytes must stay until close().
  Status open(std::span<const std::byte> bytes, AVMediaType medium, const DecodeLimits& limits);
  // In two steps, for who wants to look at the bytes first.
  Status attach(const std::filesystem::path& path, AVMediaType medium, const DecodeLimits& limits);
  Status attach(std::span<const std::byte> bytes, AVMediaType medium, const DecodeLimits& limits);
  Status open_container();
  // How many bytes were read, fewer at the end of the file; negative: an AVERROR.
  std::int64_t read_at(std::int64_t offset, std::span<std::uint8_t> to) const;
  std::int64_t size() const { return size_; }
  // The same again from its start, for containers that cannot go back to it.
  Status reopen();
  void close();
  bool has_container() const { return format_ != nullptr; }

  AVFormatContext* format() const { return format_.get(); }
  AVStream* stream() const { return format_->streams[stream_]; }
  const DecodeLimits& limits() const { return limits_; }
  // True if the container tells both decoding and presentation time of each packet.
  bool has_exact_times() const { return has_exact_times_; }

  // True if it tells at least when each is shown, and can seek by that.
  bool tells_presentation_times() const { return tells_presentation_times_; }

  // Each decode has the whole deadline.
  void restart_deadline() { deadline_.start(limits_.deadline_seconds); }
  bool expired() const { return deadline_.expired(); }

  // An error of this medium at this file, with FFmpeg's own words if it has any.
  Error error(const std::string& reason, int av_code = 0) const;
  // Another's error with this file and this medium, where it does not say them.
  Error name(Error error) const;
  // "x is 12, more than the limit of 10"
  Error beyond_limit(const std::string& what, double value, double limit, const char* option) const;

 private:
  Status check_container();
  Status choose_stream();
  bool headers_suffice() const;
  int find_stream_info();
  static int read(void* self, std::uint8_t* to, int size);
  static std::int64_t seek(void* self, std::int64_t offset, int whence);
  static int interrupted(void* self);

  std::string source_;
  AVMediaType medium_ = AVMEDIA_TYPE_UNKNOWN;
  DecodeLimits limits_;
  Deadline deadline_;
  int file_ = -1;
  std::span<const std::byte> bytes_;
  std::int64_t offset_ = 0;
  std::int64_t size_ = 0;
  IoHandle io_;
  FormatHandle format_;  // after io_, so that it is closed first
  unsigned stream_ = 0;
  bool has_exact_times_ = false, tells_presentation_times_ = false;
};

}  // namespace millrace::detail
