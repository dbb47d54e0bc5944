// Shows a media file.
#include "tools/cli/progress.h"
#include "tools/inspect/cache_view.h"
#include "tools/inspect/probe.h"
#include "tools/inspect/tiles.h"

#include <millrace/datasets/listing/mapped_file.h>
#include <millrace/decoders/audio/audio.h>
#include <millrace/decoders/gif/gif.h>
#include <millrace/decoders/image/image.h>
#include <millrace/decoders/image/image_write.h>
#include <millrace/decoders/mesh/mesh.h>
#include <millrace/decoders/text/text.h>
#include <millrace/decoders/video/video.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace millrace {

namespace {

namespace fs = std::filesystem;

void require_ok(Status status, const fs::path& path) {
  if (!status.ok()) throw status.error().at(path.string());
}

template <typename Reader>
Tiles clip_of(Reader& reader, const fs::path& path, const ViewOptions& options) {
  ClipOptions wanted{.frames = FrameSelection::uniform(options.samples)};
  Array clip =
      Array::empty(DType::uint8, clip_shape(wanted, reader.info().height, reader.info().width));
  ClipResult result;
  require_ok(reader.decode(wanted, clip.as<std::uint8_t>(), result), path);
  return clip_tiles(clip, options.samples);
}

Tiles tiles_of_file(const fs::path& path, MediaKind kind, const ViewOptions& options) {
  MappedFile file(path);
  switch (kind) {
    case MediaKind::image: {
      ImageInfo info;
      require_ok(probe_image(file.bytes(), info), path);
      Array pixels = Array::empty(DType::uint8, {info.height, info.width, 3});
      require_ok(decode_image(file.bytes(), {}, pixels), path);
      return {picture_tile(pixels)};
    }
    case MediaKind::video: {
      VideoReader reader;
      require_ok(reader.open(path), path);
      return clip_of(reader, path, options);
    }
    case MediaKind::gif: {
      GifReader reader;
      require_ok(reader.open(file.bytes()), path);
      return clip_of(reader, path, options);
    }
    case MediaKind::audio: {
      AudioReader reader;
      require_ok(reader.open(path), path);
      std::vector<float> sound;
      AudioResult result;
      require_ok(reader.decode_all({}, sound, result), path);
      Array wave = Array::empty(DType::float32, {reader.info().channels, result.valid});
      std::copy_n(sound.begin(), wave.elements(), wave.as<float>().begin());
      return {wave_tile(wave)};
    }
    case MediaKind::mesh: {
      Mesh mesh;
      require_ok(
          decode_mesh(file.bytes(),
                      {.hint = mesh_format_of(path.string()), .folder = path.parent_path()}, mesh),
          path);
      return {mesh_tile({mesh.vertices[0].data(), mesh.vertices.size() * 3},
                        {mesh.faces[0].data(), mesh.faces.size() * 3})};
    }
    default:
      throw Error("--sheet: there is nothing to draw in this kind of file")
          .at(path.string())
          .kind(ErrorKind::usage);
  }
}

}  // namespace

int view_media(const fs::path& path, const ViewOptions& options) {
  MediaFacts facts;
  require_ok(probe_media(path, facts), path);
  if (facts.kind == MediaKind::other) {
    throw Error("neither a cache nor a medium that is known by its name")
        .at(path.string())
        .kind(ErrorKind::usage)
        .hint("Caches end in .npy, .arrow, .bin or .raw; see inspect --help");
  }
  if (options.json) {
    nlohmann::json result{{"path", path.string()},
                          {"kind", name_of(facts.kind)},
                          {"format", facts.format},
                          {"bytes", facts.bytes},
                          {"width", facts.width},
                          {"height", facts.height},
                          {"channels", facts.channels},
                          {"frames", facts.frames},
                          {"seconds", facts.seconds},
                          {"frames_per_second", facts.frames_per_second},
                          {"sample_rate_hz", facts.sample_rate_hz},
                          {"vertices", facts.vertices},
                          {"faces", facts.faces},
                          {"oddity", facts.oddity}};
    fmt::print("{}\n", result.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  } else {
    fmt::print("{}: {}, {}\n", path.string(), describe(facts),
               in_bytes(static_cast<double>(facts.bytes)));
    if (!facts.oddity.empty()) fmt::print("  note: {}\n", facts.oddity);
  }
  // A media file has no checksum: --verify decodes it.
  if (options.verify || !options.sheet.empty()) {
    Tiles tiles =
        facts.kind == MediaKind::text ? Tiles{} : tiles_of_file(path, facts.kind, options);
    if (options.verify && !options.json) fmt::print("verified: it can be decoded\n");
    if (!options.sheet.empty()) write_png_file(make_sheet(tiles, {.columns = 8}), options.sheet);
  }
  return 0;
}

}  // namespace millrace
