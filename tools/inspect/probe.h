// Reads the headers of a media file, without decoding pixels or sound. Meshes have no headers and
// are read whole.
#pragma once

#include <millrace/pipeline/base/error.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace millrace {

enum class MediaKind : std::uint8_t { image, video, gif, audio, mesh, text, other };
constexpr int media_kinds = 7;
const char* name_of(MediaKind kind);
// By the file name ending, in any letter case.
MediaKind kind_of(std::string_view name);

struct MediaFacts {
  MediaKind kind = MediaKind::other;
  std::string format{};  // "JPEG", "mov,mp4 h264", "GIF", "flac", "obj", "UTF-8"
  std::int64_t width = 0, height = 0, channels = 0;
  std::int64_t frames = 0;  // 0: unknown
  double seconds = 0, frames_per_second = 0;
  std::int64_t sample_rate_hz = 0;
  std::int64_t vertices = 0, faces = 0;
  std::int64_t bytes = 0;
  // A warning, e.g. "named .jpg, but is a PNG", or empty.
  std::string oddity{};
};

Status probe_media(const std::filesystem::path& path, MediaFacts& facts);
// "1920 x 1080, 25.0 frames/s, 12.4 s, h264"
std::string describe(const MediaFacts& facts);

}  // namespace millrace
