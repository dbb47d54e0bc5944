#include "tools/inspect/tiles.h"

#include <millrace/decoders/image/image.h>
#include <millrace/decoders/image/image_write.h>
#include <millrace/decoders/mesh/mesh_picture.h>
#include <millrace/decoders/resize/resize.h>
#include <millrace/pipeline/base/random.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace millrace {

namespace {

constexpr std::uint8_t background = 24;

Array blank() {
  Array tile = Array::empty(DType::uint8, {tile_side, tile_side, 3});
  std::ranges::fill(tile.as<std::uint8_t>(), background);
  return tile;
}

void put(const Array& tile, std::int64_t x, std::int64_t y, const std::uint8_t (&colour)[3]) {
  if (x < 0 || y < 0 || x >= tile_side || y >= tile_side) return;
  std::memcpy(tile.data() + (y * tile_side + x) * 3, colour, 3);
}

void require_ok(const Status& status) {
  if (!status.ok()) throw status.error();
}

bool is_channels(std::int64_t extent) {
  return extent == 1 || extent == 3 || extent == 4;
}

// [h, w, 3] of any layout; alpha is left out.
Array as_rgb(const Array& pixels) {
  const Shape& s = pixels.shape();
  bool first = s.rank() == 3 && is_channels(s[0]) && !is_channels(s[2]);
  std::int64_t channels = s.rank() == 2 ? 1 : first ? s[0] : s[2];
  std::int64_t height = first ? s[1] : s[0], width = first ? s[2] : s[1];
  Array rgb = Array::empty(DType::uint8, {height, width, 3});
  auto from = pixels.as<const std::uint8_t>();
  std::uint8_t* to = rgb.as<std::uint8_t>().data();
  for (std::int64_t i = 0; i < height * width; ++i) {
    for (std::int64_t c = 0; c < 3; ++c) {
      std::int64_t channel = channels < 3 ? 0 : c;
      std::int64_t at = first ? channel * height * width + i : i * channels + channel;
      *to++ = from[static_cast<std::size_t>(at)];
    }
  }
  return rgb;
}

bool looks_like_picture(const Array& a) {
  const Shape& s = a.shape();
  if (a.dtype() != DType::uint8 || s.elements() == 0) return false;
  return s.rank() == 3 && (is_channels(s[2]) || is_channels(s[0]));
}
bool looks_like_clip(const Array& a) {
  const Shape& s = a.shape();
  if (a.dtype() != DType::uint8 || s.elements() == 0) return false;
  return s.rank() == 4 && (is_channels(s[3]) || is_channels(s[0]));
}
bool looks_like_sound(const Array& a) {
  const Shape& s = a.shape();
  bool type = a.dtype() == DType::float32 || a.dtype() == DType::int16;
  return type && s.elements() > 0 &&
         ((s.rank() == 2 && s[0] <= 8 && s[1] > 64) || (s.rank() == 1 && s[0] > 64));
}
bool is_integer(DType dtype) {
  return dtype != DType::boolean && dtype < DType::float16;
}

template <typename T>
double element(const Array& a, std::int64_t i) {
  return static_cast<double>(a.as<const T>()[static_cast<std::size_t>(i)]);
}

std::int64_t integer_at(const Array& a, std::int64_t i) {
  switch (a.dtype()) {
    case DType::uint8:
      return static_cast<std::int64_t>(element<std::uint8_t>(a, i));
    case DType::int8:
      return static_cast<std::int64_t>(element<std::int8_t>(a, i));
    case DType::uint16:
      return static_cast<std::int64_t>(element<std::uint16_t>(a, i));
    case DType::int16:
      return static_cast<std::int64_t>(element<std::int16_t>(a, i));
    case DType::uint32:
      return static_cast<std::int64_t>(element<std::uint32_t>(a, i));
    case DType::int32:
      return static_cast<std::int64_t>(element<std::int32_t>(a, i));
    default:
      return a.as<const std::int64_t>()[static_cast<std::size_t>(i)];
  }
}

}  // namespace

Array picture_tile(const Array& pixels) {
  Array rgb = as_rgb(pixels);
  std::int64_t height = rgb.shape()[0], width = rgb.shape()[1], longer = std::max(height, width);
  std::int64_t h = std::max<std::int64_t>(1, height * tile_side / longer);
  std::int64_t w = std::max<std::int64_t>(1, width * tile_side / longer);
  Array small = Array::empty(DType::uint8, {h, w, 3});
  require_ok(resize_image(rgb, {.filter = longer < tile_side ? Filter::nearest : Filter::bilinear},
                          small));
  Array tile = blank();
  for (std::int64_t y = 0; y < h; ++y) {
    std::memcpy(tile.data() + ((y + (tile_side - h) / 2) * tile_side + (tile_side - w) / 2) * 3,
                small.data() + y * w * 3, static_cast<std::size_t>(w) * 3);
  }
  return tile;
}

Tiles clip_tiles(const Array& clip, std::int64_t count) {
  const Shape& s = clip.shape();
  bool channels_first = s.rank() == 4 && is_channels(s[0]) && !is_channels(s[3]);
  std::int64_t frames = channels_first ? s[1] : s[0];
  std::int64_t shown = std::min(count, frames);
  Tiles tiles;
  for (std::int64_t i = 0; i < shown; ++i) {
    std::int64_t t = shown == 1 ? 0 : i * (frames - 1) / (shown - 1);
    if (!channels_first) {
      tiles.push_back(picture_tile(clip.row(t)));
      continue;
    }
    Array frame = Array::empty(DType::uint8, {s[0], s[2], s[3]});
    auto plane = static_cast<std::size_t>(s[2] * s[3]);
    for (std::int64_t c = 0; c < s[0]; ++c) {
      std::memcpy(frame.data() + static_cast<std::size_t>(c) * plane,
                  clip.data() + static_cast<std::size_t>(c * s[1] + t) * plane, plane);
    }
    tiles.push_back(picture_tile(frame));
  }
  return tiles;
}

Array wave_tile(const Array& sound) {
  Array tile = blank();
  std::int64_t channels = sound.shape().rank() == 2 ? sound.shape()[0] : 1;
  std::int64_t samples = sound.elements() / channels;
  auto value = [&](std::int64_t i) {
    if (sound.dtype() == DType::float32) return element<float>(sound, i);
    return element<std::int16_t>(sound, i) / 32768;
  };
  std::int64_t lane = tile_side / channels;
  for (std::int64_t c = 0; c < channels; ++c) {
    for (std::int64_t x = 0; x < tile_side; ++x) {
      double low = 0, high = 0;
      std::int64_t end = std::max((x + 1) * samples / tile_side, x * samples / tile_side + 1);
      for (std::int64_t i = x * samples / tile_side; i < std::min(end, samples); ++i) {
        low = std::min(low, value(c * samples + i));
        high = std::max(high, value(c * samples + i));
      }
      auto row = [&](double v) {
        double share = (1 - std::clamp(v, -1.0, 1.0)) / 2;
        return c * lane + static_cast<std::int64_t>(share * static_cast<double>(lane - 1));
      };
      for (std::int64_t y = row(high); y <= row(low); ++y) put(tile, x, y, {90, 200, 250});
    }
  }
  return tile;
}

Array token_tile(const Array& tokens) {
  const Shape& s = tokens.shape();
  std::int64_t width = s.rank() >= 2 ? s[s.rank() - 1] : std::min<std::int64_t>(s[0], 32);
  std::int64_t height = (tokens.elements() + width - 1) / width;
  Array picture = Array::empty(DType::uint8, {height, width, 3});
  auto to = picture.as<std::uint8_t>();
  std::ranges::fill(to, background);
  for (std::int64_t i = 0; i < tokens.elements(); ++i) {
    std::uint64_t colour = mix(static_cast<std::uint64_t>(integer_at(tokens, i)), 7);
    for (std::size_t c = 0; c < 3; ++c) {
      to[static_cast<std::size_t>(i) * 3 + c] =
          static_cast<std::uint8_t>(64 + (colour >> (8 * c)) % 192);
    }
  }
  return picture_tile(picture);
}

Tiles tiles_of(const Sample& row, std::int64_t frames) {
  const Schema& schema = row.schema();
  int vertices = schema.find("vertices"), faces = schema.find("faces");
  if (vertices >= 0 && faces >= 0 && row.value(vertices).dtype() == DType::float32) {
    std::vector<std::int64_t> corners;
    const Array& list = row.value(faces);
    for (std::int64_t i = 0; i < list.elements(); ++i) corners.push_back(integer_at(list, i));
    return {mesh_tile(row.value(vertices).as<const float>(), corners)};
  }
  for (int i = 0; i < schema.size(); ++i) {
    const Array& value = row.value(i);
    if (schema[i].text) continue;
    if (looks_like_clip(value)) return clip_tiles(value, frames);
    if (looks_like_picture(value)) return {picture_tile(value)};
    if (looks_like_sound(value)) return {wave_tile(value)};
    if (schema[i].shape == Shape{-1} && value.dtype() == DType::uint8) {  // maybe a file
      std::span<const std::byte> bytes{value.data(), value.bytes()};
      ImageInfo info;
      if (!probe_image(bytes, info).ok()) continue;
      Array pixels = Array::empty(DType::uint8, {info.height, info.width, 3});
      if (decode_image(bytes, {}, pixels).ok()) return {picture_tile(pixels)};
    }
  }
  for (int i = 0; i < schema.size(); ++i) {
    const Array& value = row.value(i);
    bool plain = schema[i].text || value.shape().rank() == 0 || value.elements() < 2;
    if (!plain && is_integer(value.dtype())) return {token_tile(value)};
  }
  return {};
}

Array mesh_tile(std::span<const float> vertices, std::span<const std::int64_t> faces) {
  return draw_mesh(
      vertices, faces,
      {.side = tile_side, .fit = true, .background = {background, background, background}});
}

void write_png_file(const Array& picture, const std::string& path) {
  std::vector<std::byte> file;
  require_ok(encode_png(picture, {.compression = 9}, file));
  std::string beside = path + ".new";
  std::ofstream out(beside, std::ios::binary);
  out.write(reinterpret_cast<const char*>(file.data()), static_cast<std::streamsize>(file.size()));
  out.close();
  std::error_code error;
  if (out) std::filesystem::rename(beside, path, error);
  if (!out || error) throw Error("cannot write the picture").at(path);
}

}  // namespace millrace
