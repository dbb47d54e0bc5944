// decode_files [--list] [--seconds S] [--megabytes M] FOLDER...
//
// Decodes every file below each folder with the decoder that its content asks for, each in a
// process of its own, and prints a table: how many were decoded, tolerated (something is missing,
// and the result says so) or refused (one clear line), and how many were faults: a crash, a report
// of a sanitizer, a leak, too much time or memory. Exit code 1 if there was a fault. --list also
// prints a line for each file that was not plainly decoded.
#include "tests/faults/guarded_call.h"

#include <millrace/decoders/audio/audio.h>
#include <millrace/decoders/gif/gif.h>
#include <millrace/decoders/image/image.h>
#include <millrace/decoders/image/image_transform.h>
#include <millrace/decoders/mesh/mesh.h>
#include <millrace/decoders/text/text.h>
#include <millrace/decoders/video/video.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace millrace {
namespace {

namespace fs = std::filesystem;

std::vector<std::byte> read_bytes(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

// "decoded", or "tolerated: ..." or "refused: ...".
std::string refused(const fs::path& path, Status& status) {
  Error& error = status.error();
  if (error.source().empty()) error.at(path.string());
  if (error.reason().empty()) std::abort();  // an error without a reason is a fault
  return std::string("refused: ") + error.what();
}

std::string decode_gif_clip(const fs::path& path) {
  GifReader reader;
  Status status = reader.open(path);
  if (!status.ok()) return refused(path, status);
  const ClipOptions options{.frames = FrameSelection::uniform(16), .height = 64, .width = 64};
  std::vector<std::uint8_t> clip(reader.clip_bytes(options));
  ClipResult result;
  status = reader.decode(options, clip, result);
  if (!status.ok()) return refused(path, status);
  return result.damaged > 0 ? "tolerated: some frames are damaged" : "decoded";
}

// The size that the headers tell, unless that is beyond the limits.
Status decode_whole(std::span<const std::byte> bytes, const ImageInfo& info, bool tolerant,
                    ImageResult& result) {
  const bool fits = info.width * info.height <= DecodeLimits{}.image_pixels;
  Array pixels = Array::empty(DType::uint8, {fits ? info.height : 0, fits ? info.width : 0, 3});
  return decode_image(bytes, {.tolerant = tolerant}, pixels, &result);
}

std::string decode_picture(const fs::path& path, std::span<const std::byte> bytes) {
  ImageInfo info;
  Status status = probe_image(bytes, info);
  if (!status.ok()) return refused(path, status);
  Array row = Array::empty(DType::uint8, {3, 64, 64});
  (void)transform_image(bytes, {.fast = true, .image = {.tolerant = true}}, row);
  ImageResult result;
  status = decode_whole(bytes, info, false, result);
  if (!status.ok()) {
    if (!decode_whole(bytes, info, true, result).ok()) return refused(path, status);
    return "tolerated: " + result.damage;
  }
  if (info.format == ImageFormat::gif) return decode_gif_clip(path);
  return "decoded";
}

std::string decode_one_mesh(const fs::path& path, std::span<const std::byte> bytes) {
  Mesh mesh;
  Status status = decode_mesh(
      bytes, {.hint = mesh_format_of(path.string()), .folder = path.parent_path(), .bins = 128},
      mesh);
  return status.ok() ? "decoded" : refused(path, status);
}

Status decode_clips(VideoReader& reader, std::int64_t& damaged) {
  for (const FrameSelection& frames :
       {FrameSelection::first(17), FrameSelection::uniform(8), FrameSelection::at_times({1.5})}) {
    const ClipOptions options{.frames = frames, .height = 64, .width = 64};
    std::vector<std::uint8_t> clip(reader.clip_bytes(options));
    ClipResult result;
    if (Status status = reader.decode(options, clip, result); !status.ok()) return status;
    damaged += result.damaged;
  }
  return {};
}

Status decode_sound(AudioReader& reader) {
  const AudioOptions options{
      .start = 24'000, .samples = 24'000, .sample_rate_hz = 24'000, .channels = 1};
  std::vector<float> sound(24'000);
  AudioResult result;
  if (Status status = reader.decode(options, sound, result); !status.ok()) return status;
  sound.clear();
  return reader.decode_all({}, sound, result);
}

// Video and sound of one file; what it does not have is no fault of it.
std::string decode_media(const fs::path& path) {
  std::int64_t damaged = 0;
  VideoReader video;
  AudioReader audio;
  Status picture = video.open(path);
  const bool has_video = picture.ok();
  if (has_video) picture = decode_clips(video, damaged);
  Status sound = audio.open(path);
  const bool has_audio = sound.ok();
  if (has_audio) sound = decode_sound(audio);
  if (has_video && !picture.ok()) return refused(path, picture);
  if (has_audio && !sound.ok()) return refused(path, sound);
  if (!has_video && !has_audio) return refused(path, picture);
  return damaged > 0 ? "tolerated: " + std::to_string(damaged) + " damaged packets" : "decoded";
}

std::string decode_file(const fs::path& path) {
  const std::vector<std::byte> bytes = read_bytes(path);
  ImageInfo info;
  const Status image = probe_image(bytes, info);
  if (image.ok() || image.error().stage() != name_of(ImageFormat::unknown)) {
    return decode_picture(path, bytes);
  }
  const MeshFormat hint = mesh_format_of(path.string());
  if (sniff_mesh(bytes, hint) != MeshFormat::unknown) return decode_one_mesh(path, bytes);
  if (path.extension() != ".txt") return decode_media(path);
  std::string text;
  Status status = decode_text(bytes, text);
  return status.ok() ? "decoded" : refused(path, status);
}

struct Counts {
  int files = 0, decoded = 0, tolerated = 0, refused = 0, faults = 0;
  double seconds = 0, megabytes = 0;

  void add(const GuardedResult& result) {
    ++files;
    seconds = std::max(seconds, result.seconds);
    megabytes = std::max(megabytes, result.megabytes);
    if (!result.fault.empty()) {
      ++faults;
    } else if (result.text == "decoded") {
      ++decoded;
    } else {
      ++(result.text.starts_with("tolerated") ? tolerated : refused);
    }
  }
  void add(const Counts& other) {
    files += other.files;
    decoded += other.decoded;
    tolerated += other.tolerated;
    refused += other.refused;
    faults += other.faults;
    seconds = std::max(seconds, other.seconds);
    megabytes = std::max(megabytes, other.megabytes);
  }
  void print(const char* name) const {
    std::printf("| %s | %d | %d | %d | %d | %d | %.1f | %.0f |\n", name, files, decoded, tolerated,
                refused, faults, seconds, megabytes);
  }
};

Counts decode_folder(const fs::path& folder, const GuardLimits& limits, bool list) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && !entry.is_symlink()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  Counts counts;
  for (const fs::path& path : files) {
    const GuardedResult result = guarded_call(limits, [&] { return decode_file(path); });
    counts.add(result);
    if (!result.fault.empty()) {
      std::printf("FAULT %s: %s\n", path.c_str(), result.fault.c_str());
    } else if (list && result.text != "decoded") {
      std::printf("%s (%s)\n", result.text.c_str(), path.c_str());
    }
    std::fflush(stdout);
  }
  return counts;
}

int run(const std::vector<std::string_view>& arguments) {
  GuardLimits limits;
  bool list = false;
  std::vector<fs::path> folders;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const bool has_value = i + 1 < arguments.size();
    if (arguments[i] == "--list") {
      list = true;
    } else if (arguments[i] == "--seconds" && has_value) {
      limits.seconds = std::atof(arguments[++i].data());
    } else if (arguments[i] == "--megabytes" && has_value) {
      limits.megabytes = std::atof(arguments[++i].data());
    } else if (fs::is_directory(arguments[i])) {
      folders.emplace_back(arguments[i]);
    } else {
      std::fprintf(stderr, "no folder: %s\n", arguments[i].data());
      return 2;
    }
  }
  if (folders.empty()) {
    std::fprintf(stderr, "usage: decode_files [--list] [--seconds S] [--megabytes M] FOLDER...\n");
    return 2;
  }
  std::vector<Counts> all;
  for (const fs::path& folder : folders) all.push_back(decode_folder(folder, limits, list));
  Counts total;
  std::printf(
      "| set | files | decoded | tolerated | refused | faults | slowest s | largest MB |\n"
      "|---|---:|---:|---:|---:|---:|---:|---:|\n");
  for (std::size_t i = 0; i < all.size(); ++i) {
    const fs::path name = folders[i].has_filename() ? folders[i] : folders[i].parent_path();
    all[i].print(name.filename().c_str());
    total.add(all[i]);
  }
  total.print("all");
  return total.faults > 0 ? 1 : 0;
}

}  // namespace
}  // namespace millrace

int main(int argc, char** argv) {
  return millrace::run({argv + 1, argv + argc});
}
