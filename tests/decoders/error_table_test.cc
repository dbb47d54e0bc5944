// Every format with every fault: the messages as a table in the test output. Each names the file,
// the medium, the reason and what to do.
#include "tests/reference.h"

#include <millrace/decoders/audio/audio.h>
#include <millrace/decoders/gif/gif.h>
#include <millrace/decoders/image/image.h>
#include <millrace/decoders/mesh/mesh.h>
#include <millrace/decoders/text/text.h>
#include <millrace/decoders/text/tokenizer.h>
#include <millrace/decoders/video/video.h>

#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace millrace {
namespace {

using Path = std::filesystem::path;

Status decode_picture(const Path& path, const DecodeLimits& limits) {
  const auto bytes = read_bytes(path);
  ImageInfo info;
  if (Status status = probe_image(bytes, info); !status.ok()) return status;
  const bool fits = info.width * info.height < 1'000'000;
  Array pixels = Array::empty(DType::uint8, {fits ? info.height : 0, fits ? info.width : 0, 3});
  return decode_image(bytes, {.limits = limits}, pixels);
}

Status decode_frames(VideoReader& reader) {
  const ClipOptions options{
      .frames = FrameSelection::first(6), .height = 8, .width = 8, .strict = true};
  std::vector<std::uint8_t> clip(reader.clip_bytes(options));
  ClipResult result;
  return reader.decode(options, clip, result);
}

Status decode_video(const Path& path, const DecodeLimits& limits) {
  VideoReader reader;
  Status status = reader.open(path, {.limits = limits});
  return status.ok() ? decode_frames(reader) : std::move(status);
}

Status decode_animation(const Path& path, const DecodeLimits& limits) {
  GifReader reader;
  if (Status status = reader.open(path, limits); !status.ok()) return status;
  const ClipOptions options{.frames = FrameSelection::first(4), .height = 8, .width = 8};
  std::vector<std::uint8_t> clip(reader.clip_bytes(options));
  ClipResult result;
  return reader.decode(options, clip, result);
}

Status decode_sound(const Path& path, const DecodeLimits& limits) {
  AudioReader reader;
  if (Status status = reader.open(path, limits); !status.ok()) return status;
  std::vector<float> sound;
  AudioResult result;
  return reader.decode_all({}, sound, result);
}

Status decode_model(const Path& path, const DecodeLimits& limits) {
  Mesh mesh;
  return decode_mesh(read_bytes(path), {.hint = mesh_format_of(path.string()), .limits = limits},
                     mesh);
}

Status decode_words(const Path& path, const DecodeLimits&) {
  std::string text;
  return decode_text(read_bytes(path), text);
}

Status decode_merges(const Path& path, const DecodeLimits& limits) {
  std::unique_ptr<const Tokenizer> tokenizer;
  // Its limit is not one of DecodeLimits.
  const std::int64_t most = limits.vertices == 1 ? 10 : BpeOptions{}.max_bytes;
  return load_bpe(read_bytes(path), {.max_bytes = most}, tokenizer);
}

struct Format {
  const char* seed;  // target and name in make_seeds.py
  std::function<Status(const Path&, const DecodeLimits&)> decode;
  // What surely fails; other damage may leave something that can be decoded.
  std::string must_fail;
};

// e: empty, g: a page of HTML, c: cut in half, l: limits of one, f: bits flipped, m: missing
const Format formats[] = {
    {"jpeg/baseline.jpg", decode_picture, "eglc"},
    {"jpeg/progressive.jpg", decode_picture, "eglc"},
    {"png/type2_8bit.png", decode_picture, "eglcf"},
    {"png/type3_4bit_interlaced.png", decode_picture, "eglcf"},
    {"webp/lossy.webp", decode_picture, "eglc"},
    {"webp/lossless.webp", decode_picture, "eglc"},
    {"webp/moving.webp", decode_picture, "egl"},
    {"image/still.gif", decode_picture, "eglc"},
    {"image/a.bmp", decode_picture, "eglc"},
    {"image/lzw.tiff", decode_picture, "eglc"},
    {"image/a.tga", decode_picture, "egl"},
    {"image/a.ppm", decode_picture, "eglc"},
    {"video/h264.mp4", decode_video, "eglcfm"},
    {"video/hevc.mp4", decode_video, "eglcm"},
    {"video/vp9.webm", decode_video, "eglm"},
    {"video/vp8.mkv", decode_video, "eglm"},
    {"video/mpeg4.avi", decode_video, "eglm"},
    {"video/mjpeg.mov", decode_video, "eglm"},
    {"video/mpeg2.ts", decode_video, "eglm"},
    {"gif/disposal2.gif", decode_animation, "egclm"},
    {"audio/pcm16.wav", decode_sound, "eglm"},
    {"audio/float.wav", decode_sound, "eglm"},
    {"audio/a.flac", decode_sound, "eglm"},
    {"audio/a.mp3", decode_sound, "eglm"},
    {"audio/vorbis.ogg", decode_sound, "eglm"},
    {"audio/a.opus", decode_sound, "eglm"},
    {"audio/a.m4a", decode_sound, "eglcm"},
    {"obj/plain.obj", decode_model, "egl"},
    {"off/plain.off", decode_model, "eglc"},
    {"ply/ascii.ply", decode_model, "eglc"},
    {"ply/binary_little_endian.ply", decode_model, "eglc"},
    {"stl/ascii.stl", decode_model, "egl"},
    {"stl/binary.stl", decode_model, "eglc"},
    {"gltf/embedded.gltf", decode_model, "eglc"},
    {"gltf/binary.glb", decode_model, "eglc"},
    {"text/utf16.txt", decode_words, "c"},
    {"text/latin1.txt", decode_words, "f"},
    {"tokenizer/merges.txt", decode_merges, "egl"},
    {"tokenizer/merges.txt.gz", decode_merges, "eglc"},
};

const std::map<char, const char*> faults = {
    {'e', "empty"},        {'g', "a web page"},     {'c', "cut"},
    {'f', "flipped bits"}, {'l', "beyond a limit"}, {'m', "missing"}};

constexpr DecodeLimits limits_of_one{
    .image_pixels = 1, .frame_pixels = 1, .channels = 0, .vertices = 1, .faces = 1};

void damage(char fault, std::vector<std::byte>& bytes) {
  static const std::string page = "<!DOCTYPE html><html><body>404 Not Found</body></html>";
  if (fault == 'e') bytes.clear();
  if (fault == 'c') bytes.resize(bytes.size() / 2);
  if (fault == 'g') {
    const auto text = std::as_bytes(std::span(page));
    bytes.assign(text.begin(), text.end());
  }
  for (std::size_t i = 60; fault == 'f' && i < bytes.size(); i += 23) bytes[i] ^= std::byte{0x5A};
}

void expect_helpful(const std::string& path, const Error& error) {
  const std::string message = error.what();
  EXPECT_EQ(message.find(path + ": "), 0U) << message;
  EXPECT_FALSE(error.stage().empty()) << message;
  EXPECT_NE(message.find(error.stage() + ": "), std::string::npos) << message;
  EXPECT_GE(error.reason().size(), 8U) << message;
  EXPECT_FALSE(error.hint().empty()) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  EXPECT_LT(message.size(), 400U + 2 * path.size()) << message;
}

TEST(Errors, OfEveryFormatAndFaultNameFileMediumReasonAndHint) {
  TemporaryFolder seeds, folder;
  run_script("tests/fuzz/make_seeds.py", seeds.path().string());
  std::printf("| file | fault | message |\n|---|---|---|\n");
  int messages = 0;
  for (const Format& format : formats) {
    const std::vector<std::byte> whole = read_bytes(seeds / format.seed);
    ASSERT_FALSE(whole.empty()) << format.seed;
    const std::string name = Path(format.seed).filename().string();
    for (const auto& [fault, called] : faults) {
      SCOPED_TRACE(std::string(format.seed) + ", " + called);
      const bool reads_paths = format.must_fail.find('m') != std::string::npos;
      if (fault == 'm' && !reads_paths) continue;  // it takes bytes: who reads the file tells
      const Path path = folder / name;
      std::vector<std::byte> bytes = whole;
      damage(fault, bytes);
      if (fault == 'm') {
        std::filesystem::remove(path);
      } else {
        write_bytes(path, bytes);
      }
      Status status = format.decode(path, fault == 'l' ? limits_of_one : DecodeLimits{});
      EXPECT_FALSE(status.ok() && format.must_fail.find(fault) != std::string::npos);
      if (status.ok()) continue;
      if (status.error().source().empty() && !reads_paths) status.error().at(path.string());
      expect_helpful(path.string(), status.error());
      std::string message = status.error().what();
      for (std::size_t at; (at = message.find(path.string())) != std::string::npos;) {
        message.replace(at, path.string().size(), name);
      }
      std::printf("| %s | %s | %s |\n", format.seed, called, message.c_str());
      ++messages;
    }
  }
  EXPECT_GE(messages, 130);
}

}  // namespace
}  // namespace millrace
