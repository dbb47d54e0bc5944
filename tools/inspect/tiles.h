// Draws samples as small pictures, the tiles of a contact sheet.
#pragma once

#include <millrace/pipeline/data/array.h>
#include <millrace/pipeline/data/sample.h>
#include <millrace/pipeline/data/schema.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace millrace {

// uint8 [height, width, 3] each.
using Tiles = std::vector<Array>;

constexpr std::int64_t tile_side = 128;

// Pixels of any common layout: [h, w], [h, w, c] or [c, h, w], scaled to fit a tile.
Array picture_tile(const Array& pixels);
// Up to `count` frames of [t, h, w, c] or [c, t, h, w] (or [t, h, w]), spread over the clip.
Tiles clip_tiles(const Array& clip, std::int64_t count);
// The envelope of [channels, samples] in float32 or int16, each channel below the other.
Array wave_tile(const Array& sound);
// Faces in grey, lit from the eye, from above and to the side.
Array mesh_tile(std::span<const float> vertices, std::span<const std::int64_t> faces);
// Tokens as colours: equal tokens have equal colours.
Array token_tile(const Array& tokens);

// The pictures of a row of a cache, by what its fields look like; nothing if none can be shown.
Tiles tiles_of(const Sample& row, std::int64_t frames);

void write_png_file(const Array& picture, const std::string& path);

}  // namespace millrace
