#include "mp4_length.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <span>
#include <string_view>

namespace millrace::detail {
namespace {

// Numbers in boxes are big-endian, in 4 or, from version 1 of a box on, 8 bytes.
std::uint64_t number(const MediaInput& input, std::int64_t at, std::size_t bytes) {
  std::array<std::uint8_t, 8> raw{};
  if (input.read_at(at, std::span(raw).first(bytes)) != static_cast<std::int64_t>(bytes)) return 0;
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) value = value << 8 | raw[i];
  return value;
}

struct Box {
  std::int64_t begin = 0, end = 0;  // of its content
};

// Finds the next box of that name at or after `at`, inside `in`, and moves `at` behind it.
std::optional<Box> next_box(const MediaInput& input, Box in, std::int64_t& at,
                            std::string_view name) {
  // Each step advances by at least 8 bytes; real files have about ten boxes per level.
  for (int count = 0; count < 4096 && at + 8 <= in.end; ++count) {
    std::array<std::uint8_t, 8> head{};
    if (input.read_at(at, head) != 8) return std::nullopt;
    const std::string_view found(reinterpret_cast<const char*>(head.data()) + 4, 4);
    std::uint64_t size = number(input, at, 4);
    std::int64_t begin = at + 8;
    if (size == 1) {
      size = number(input, begin, 8);
      begin += 8;
    } else if (size == 0) {
      size = static_cast<std::uint64_t>(in.end - at);
    }
    if (size < 8 || size > static_cast<std::uint64_t>(in.end - at)) return std::nullopt;
    at += static_cast<std::int64_t>(size);
    if (found == name && begin <= at) return Box{begin, at};
  }
  return std::nullopt;
}

std::optional<Box> box(const MediaInput& input, Box in, std::string_view name) {
  std::int64_t at = in.begin;
  return next_box(input, in, at, name);
}

// Ticks per second and duration of a movie (mvhd) or a track (mdhd).
struct Clock {
  std::int64_t ticks_per_second = 0, duration = 0;
};

Clock clock_of(const MediaInput& input, Box header) {
  const bool wide = number(input, header.begin, 1) > 0;
  const std::int64_t at = header.begin + (wide ? 20 : 12);
  return {static_cast<std::int64_t>(number(input, at, 4)),
          static_cast<std::int64_t>(number(input, at + 4, wide ? 8 : 4))};
}

struct Edit {
  std::int64_t duration = 0;  // in ticks of the movie
  std::int64_t start = 0;     // in ticks of the track
};

// The only edit that is not empty.
std::optional<Edit> only_edit(const MediaInput& input, Box list) {
  const std::size_t bytes = number(input, list.begin, 1) > 0 ? 8 : 4;
  const auto count = static_cast<std::int64_t>(number(input, list.begin + 4, 4));
  std::optional<Edit> found;
  for (std::int64_t i = 0; i < std::min<std::int64_t>(count, 3); ++i) {
    const auto step = static_cast<std::int64_t>(bytes);
    const std::int64_t at = list.begin + 8 + i * (2 * step + 4);
    const std::uint64_t start = number(input, at + step, bytes);
    const bool is_pause = start == (bytes == 8 ? ~std::uint64_t{0} : 0xFFFF'FFFFU);
    if (is_pause && !found) continue;
    if (found || number(input, at + 2 * step, 4) != 0x10000) return std::nullopt;
    found =
        Edit{static_cast<std::int64_t>(number(input, at, bytes)), static_cast<std::int64_t>(start)};
  }
  return count > 3 ? std::nullopt : found;
}

std::optional<Box> find_track(const MediaInput& input, Box film, std::uint32_t track) {
  std::int64_t at = film.begin;
  while (auto candidate = next_box(input, film, at, "trak")) {
    auto header = box(input, *candidate, "tkhd");
    if (!header) continue;
    const bool wide = number(input, header->begin, 1) > 0;
    if (number(input, header->begin + (wide ? 20 : 12), 4) == track) return candidate;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::int64_t> mp4_track_length(const MediaInput& input, std::uint32_t track) {
  const auto film = box(input, {0, input.size()}, "moov");
  if (!film || box(input, *film, "mvex")) return std::nullopt;
  const auto film_header = box(input, *film, "mvhd");
  const auto found = find_track(input, *film, track);
  if (!film_header || !found) return std::nullopt;
  const auto media = box(input, *found, "mdia");
  const auto header = media ? box(input, *media, "mdhd") : std::nullopt;
  if (!header) return std::nullopt;
  const Clock film_clock = clock_of(input, *film_header), clock = clock_of(input, *header);
  constexpr std::int64_t most = std::int64_t{1}
                                << 40;  // so that the products below do not overflow
  if (film_clock.ticks_per_second <= 0 || clock.ticks_per_second <= 0 || clock.duration <= 0 ||
      clock.duration > most) {
    return std::nullopt;
  }
  const auto edits = box(input, *found, "edts");
  const auto list = edits ? box(input, *edits, "elst") : std::nullopt;
  if (!list) return clock.duration;
  const auto edit = only_edit(input, *list);
  if (!edit || edit->start < 0 || edit->start > clock.duration || edit->duration < 0 ||
      edit->duration > most) {
    return std::nullopt;
  }
  const std::int64_t to_end = clock.duration - edit->start;
  const std::int64_t edited =
      av_rescale(edit->duration, clock.ticks_per_second, film_clock.ticks_per_second);
  const std::int64_t tick = clock.ticks_per_second / film_clock.ticks_per_second + 1;
  return std::abs(edited - to_end) <= tick ? to_end : edited;
}

}  // namespace millrace::detail
