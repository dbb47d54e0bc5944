// Private: an open container and its chosen stream, read from a file or from memory. Used by video
// and audio.
//
// Note [Hostile containers]. All bytes come through our own read callback: FFmpeg opens no file by
// name, and its requests to open more (playlists, external tracks) are refused. Demuxers whose
// purpose is to open other resources are disabled. Limits are checked as soon as the header is
// read, and the deadline in each callback.
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
  // The bytes must stay valid until close().
  Status open(std::span<const std::byte> bytes, AVMediaType medium, const DecodeLimits& limits);
  // The same in two steps, for a caller that reads some bytes first.
  Status attach(const std::filesystem::path& path, AVMediaType medium, const DecodeLimits& limits);
  Status attach(std::span<const std::byte> bytes, AVMediaType medium, const DecodeLimits& limits);
  Status open_container();
  // Returns the number of bytes read, fewer at the end of the file, or an AVERROR.
  std::int64_t read_at(std::int64_t offset, std::span<std::uint8_t> to) const;
  std::int64_t size() const { return size_; }
  // Opens the same input again, for containers that cannot seek back to the start.
  Status reopen();
  void close();
  bool has_container() const { return format_ != nullptr; }

  AVFormatContext* format() const { return format_.get(); }
  AVStream* stream() const { return format_->streams[stream_]; }
  const DecodeLimits& limits() const { return limits_; }
  // True if the container has decoding and presentation times for each packet.
  bool has_exact_times() const { return has_exact_times_; }

  // True if it has at least presentation times and can seek by them.
  bool tells_presentation_times() const { return tells_presentation_times_; }

  // Restarts the deadline; called at the start of each decode.
  void restart_deadline() { deadline_.start(limits_.deadline_seconds); }
  bool expired() const { return deadline_.expired(); }

  // An error with this file's path and medium, and FFmpeg's message if there is one.
  Error error(const std::string& reason, int av_code = 0) const;
  // Adds this file's path and medium to an error that has none.
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
