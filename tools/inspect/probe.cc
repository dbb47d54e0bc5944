#include "tools/inspect/probe.h"

#include <millrace/datasets/listing/mapped_file.h>
#include <millrace/decoders/audio/audio.h>
#include <millrace/decoders/gif/gif.h>
#include <millrace/decoders/image/image.h>
#include <millrace/decoders/mesh/mesh.h>
#include <millrace/decoders/text/text.h>
#include <millrace/decoders/video/video.h>

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace millrace {

namespace {

std::string extension_of(std::string_view name) {
  std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || dot == 0 || name[dot - 1] == '/') return "";
  std::string extension(name.substr(dot + 1));
  std::ranges::transform(extension, extension.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return extension;
}

// The format by file name ending; only endings that stand for one format.
ImageFormat promised_by(const std::string& extension) {
  static const std::map<std::string, ImageFormat> formats = {
      {"jpg", ImageFormat::jpeg},  {"jpeg", ImageFormat::jpeg}, {"png", ImageFormat::png},
      {"webp", ImageFormat::webp}, {"bmp", ImageFormat::bmp},   {"tif", ImageFormat::tiff},
      {"tiff", ImageFormat::tiff}};
  auto found = formats.find(extension);
  return found == formats.end() ? ImageFormat::unknown : found->second;
}

Status probe_picture(std::span<const std::byte> bytes, const std::string& extension,
                     MediaFacts& facts) {
  ImageInfo info;
  if (Status status = probe_image(bytes, info); !status.ok()) return status;
  facts.format = name_of(info.format);
  facts.width = info.width;
  facts.height = info.height;
  facts.channels = info.channels;
  ImageFormat promised = promised_by(extension);
  if (promised != ImageFormat::unknown && promised != info.format) {
    facts.oddity = "named ." + extension + ", but is a " + facts.format;
  } else if (info.bits > 8) {
    facts.oddity = fmt::format("{} bits per channel; the upper 8 are used", info.bits);
  }
  return {};
}

Status probe_clip(const std::filesystem::path& path, MediaFacts& facts) {
  VideoInfo info;
  if (Status status = probe_video(path, info); !status.ok()) return status;
  facts.format = info.container + " " + info.codec;
  facts.width = info.width;
  facts.height = info.height;
  facts.frames = info.frames;
  facts.seconds = info.duration_seconds;
  facts.frames_per_second = info.frames_per_second;
  facts.channels = 3;
  if (info.rotation_degrees != 0) {
    facts.oddity = fmt::format("turned by {} degrees when shown", info.rotation_degrees);
  }
  return {};
}

Status probe_gif(std::span<const std::byte> bytes, MediaFacts& facts) {
  GifReader reader;
  if (Status status = reader.open(bytes); !status.ok()) return status;
  facts.format = "GIF";
  facts.width = reader.info().width;
  facts.height = reader.info().height;
  facts.channels = 3;
  facts.frames = static_cast<std::int64_t>(reader.info().delays_ms.size());
  facts.seconds = reader.timeline().end_seconds;
  if (facts.seconds > 0)
    facts.frames_per_second = static_cast<double>(facts.frames) / facts.seconds;
  if (facts.frames == 1) facts.oddity = "a GIF that does not move";
  return {};
}

Status probe_sound(const std::filesystem::path& path, MediaFacts& facts) {
  AudioReader reader;
  if (Status status = reader.open(path); !status.ok()) return status;
  const AudioInfo& info = reader.info();
  facts.format = info.codec;
  facts.channels = info.channels;
  facts.sample_rate_hz = info.sample_rate_hz;
  facts.seconds = info.duration_seconds;
  facts.frames = info.samples;
  return {};
}

Status probe_mesh(const std::filesystem::path& path, std::span<const std::byte> bytes,
                  MediaFacts& facts) {
  Mesh mesh;
  MeshOptions options{.hint = mesh_format_of(path.string()),
                      .folder = path.parent_path(),
                      .normalize = false,
                      .sort = false};
  if (Status status = decode_mesh(bytes, options, mesh); !status.ok()) return status;
  facts.format = to_string(mesh.format);
  facts.vertices = static_cast<std::int64_t>(mesh.vertices.size());
  facts.faces = static_cast<std::int64_t>(mesh.faces.size());
  if (mesh.counts.other_elements > 0) {
    facts.oddity = fmt::format("{} points or lines are left out", mesh.counts.other_elements);
  }
  return {};
}

}  // namespace

const char* name_of(MediaKind kind) {
  constexpr const char* names[] = {"images", "videos", "GIFs", "sounds",
                                   "meshes", "texts",  "other"};
  return names[static_cast<int>(kind)];
}

MediaKind kind_of(std::string_view name) {
  static const std::map<std::string, MediaKind> kinds = [] {
    std::map<std::string, MediaKind> all;
    auto add = [&](MediaKind kind, std::initializer_list<const char*> extensions) {
      for (const char* extension : extensions) all[extension] = kind;
    };
    add(MediaKind::image,
        {"jpg", "jpeg", "png", "webp", "bmp", "tif", "tiff", "ppm", "pgm", "tga"});
    add(MediaKind::video, {"mp4", "mov", "avi", "mkv", "webm", "m4v", "mpg", "mpeg"});
    add(MediaKind::gif, {"gif"});
    add(MediaKind::audio, {"wav", "flac", "mp3", "ogg", "opus", "m4a", "aac"});
    add(MediaKind::mesh, {"obj", "ply", "stl", "off", "glb", "gltf"});
    add(MediaKind::text, {"txt"});
    return all;
  }();
  auto found = kinds.find(extension_of(name));
  return found == kinds.end() ? MediaKind::other : found->second;
}

Status probe_media(const std::filesystem::path& path, MediaFacts& facts) {
  facts = MediaFacts{.kind = kind_of(path.string())};
  MappedFile file(path, Access::random);  // reads only the pages that are used
  facts.bytes = static_cast<std::int64_t>(file.size());
  if (facts.bytes == 0) return Error("the file is empty").at(path.string());
  std::string extension = extension_of(path.string());
  Status status;
  switch (facts.kind) {
    case MediaKind::image:
      status = probe_picture(file.bytes(), extension, facts);
      break;
    case MediaKind::video:
      status = probe_clip(path, facts);
      break;
    case MediaKind::gif:
      status = probe_gif(file.bytes(), facts);
      break;
    case MediaKind::audio:
      status = probe_sound(path, facts);
      break;
    case MediaKind::mesh:
      status = probe_mesh(path, file.bytes(), facts);
      break;
    case MediaKind::text: {
      std::string text;
      status = decode_text(file.bytes(), text);
      facts.format = "UTF-8";
      break;
    }
    case MediaKind::other:
      break;
  }
  if (!status.ok()) status.error().at(path.string());
  return status;
}

std::string describe(const MediaFacts& f) {
  std::string text = f.format;
  if (f.width > 0) text += fmt::format(", {} x {}", f.width, f.height);
  if (f.kind == MediaKind::image) text += fmt::format(", {} channels", f.channels);
  if (f.kind == MediaKind::video || f.kind == MediaKind::gif) {
    text += fmt::format(", {} frames, {:.3g} frames/s, {:.2f} s", f.frames, f.frames_per_second,
                        f.seconds);
  }
  if (f.kind == MediaKind::audio) {
    text += fmt::format(", {} channels, {} Hz, {:.2f} s", f.channels, f.sample_rate_hz, f.seconds);
  }
  if (f.kind == MediaKind::mesh)
    text += fmt::format(", {} vertices, {} faces", f.vertices, f.faces);
  return text;
}

}  // namespace millrace
