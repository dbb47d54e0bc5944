// Every limit with its default: what is just within is not refused for it, what is one beyond is.
// Most files here only claim their size: a limit is checked before anything is decoded.
#include "tests/decoders/image/jpeg_files.h"
#include "tests/decoders/media_reference.h"

#include <millrace/decoders/audio/audio.h>
#include <millrace/decoders/gif/gif.h>
#include <millrace/decoders/gif/gif_write.h>
#include <millrace/decoders/image/image.h>
#include <millrace/decoders/image/image_write.h>
#include <millrace/decoders/mesh/mesh.h>
#include <millrace/decoders/video/video.h>

#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace millrace {
namespace {

std::string text(const Status& status) {
  return status.ok() ? "ok" : status.error().what();
}

bool names(const Status& status, const std::string& limit) {
  return !status.ok() && status.error().hint().find(limit) != std::string::npos;
}

std::span<const std::byte> bytes_of(const std::string& content) {
  return std::as_bytes(std::span(content));
}

std::string big_endian(std::uint32_t value) {
  std::string out;
  for (int shift : {24, 16, 8, 0}) out += static_cast<char>(value >> shift);
  return out;
}

std::string little_endian(std::uint32_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
  return out;
}

Status decode_claim(std::span<const std::byte> bytes) {
  return decode_image(bytes, {}, Array::empty(DType::uint8, {0, 0, 3}));
}

// The header of a PNG and nothing after it.
Status png_claim(std::uint32_t width, std::uint32_t height) {
  return decode_claim(bytes_of("\x89PNG\r\n\x1A\n" + big_endian(13) + "IHDR" + big_endian(width) +
                               big_endian(height) + std::string("\x08\x02\0\0\0abcd", 9)));
}

TEST(DefaultLimits, OfImages) {
  EXPECT_FALSE(names(png_claim(16'384, 1), "image_side")) << text(png_claim(16'384, 1));
  EXPECT_TRUE(names(png_claim(16'385, 1), "image_side")) << text(png_claim(16'385, 1));
  EXPECT_TRUE(names(png_claim(1, 16'385), "image_side"));
  // 14,351 x 6,235 = 89,478,485
  EXPECT_FALSE(names(png_claim(14'351, 6'235), "image_pixels"));
  EXPECT_TRUE(names(png_claim(14'351, 6'236), "image_pixels"));
}

TEST(DefaultLimits, OfJpegScans) {
  for (int scans : {100, 101}) {
    Array pixels = Array::empty(DType::uint8, {16, 16, 3});
    const Status status = decode_image(encode_jpeg(16, 16, {.scans = scans}), {}, pixels);
    EXPECT_EQ(status.ok(), scans == 100) << text(status);
    EXPECT_EQ(names(status, "jpeg_scans"), scans == 101) << text(status);
  }
}

TEST(DefaultLimits, OfPngChunks) {
  Array image = Array::empty(DType::uint8, {4, 4, 3});
  std::memset(image.data(), 50, image.bytes());
  std::vector<std::byte> plain;
  ASSERT_TRUE(encode_png(image, {}, plain).ok());
  for (std::uint32_t length : {8'000'000U, 8'000'001U}) {
    std::string chunk = big_endian(length) + "tEXt";
    chunk.resize(length + 12);
    std::vector<std::byte> file = plain;
    const auto inserted = bytes_of(chunk);
    file.insert(file.begin() + 33, inserted.begin(), inserted.end());
    const Status status = decode_image(file, {}, image);
    EXPECT_EQ(names(status, "png_chunk_bytes"), length == 8'000'001) << text(status);
    EXPECT_EQ(status.ok(), length == 8'000'000) << text(status);
  }
}

Status decode_video(const std::filesystem::path& path, const FrameSelection& frames) {
  VideoReader reader;
  if (Status status = reader.open(path); !status.ok()) return status;
  const ClipOptions options{.frames = frames, .height = 8, .width = 8};
  std::vector<std::uint8_t> clip(reader.clip_bytes(options));
  ClipResult result;
  return reader.decode(options, clip, result);
}

TEST(DefaultLimits, OfVideo) {
  TemporaryFolder folder;
  auto make = [&](const std::string& name, const std::string& source, const std::string& more) {
    run_ffmpeg("-f lavfi -i " + source + " " + more + " '" + (folder / name).string() + "'");
    return folder / name;
  };
  const FrameSelection one = FrameSelection::first(1);
  const std::string jpeg = "-frames:v 1 -c:v mjpeg -pix_fmt yuvj444p";
  EXPECT_EQ(text(decode_video(make("4096.mkv", "color=red:s=4096x4096", jpeg), one)), "ok");
  EXPECT_TRUE(
      names(decode_video(make("4098.mkv", "color=red:s=4098x4096", jpeg), one), "frame_pixels"));

  const auto small = make("small.mp4", "color=red:s=16x16:r=10:d=1", "-c:v mpeg4");
  EXPECT_EQ(text(decode_video(small, FrameSelection::first(10'000))), "ok");
  EXPECT_TRUE(names(decode_video(small, FrameSelection::first(10'001)), "frames_kept"));

  const auto hour = make("hour.mp4", "color=red:s=16x16:r=1/1800:d=3600", "-c:v mpeg4");
  EXPECT_EQ(text(decode_video(hour, one)), "ok");
  const auto longer = make("longer.mp4", "color=red:s=16x16:r=1/3601:d=3601", "-c:v mpeg4");
  EXPECT_TRUE(names(decode_video(longer, one), "duration_seconds"));

  for (int streams : {16, 17}) {
    std::string maps = "-c:v mpeg4";
    for (int i = 0; i < streams; ++i) maps += " -map 0:v";
    const auto path = make(std::to_string(streams) + ".mkv", "color=red:s=16x16:r=4:d=1", maps);
    const Status status = decode_video(path, one);
    EXPECT_EQ(status.ok(), streams == 16) << text(status);
    EXPECT_EQ(names(status, "streams"), streams == 17) << text(status);
  }
}

// 2 GiB are refused before they are written to, so what is told to be there need not be.
TEST(DefaultLimits, OfBytesPerClip) {
  TemporaryFolder folder;
  run_ffmpeg("-f lavfi -i color=red:s=16x16:r=4:d=1 -c:v mpeg4 '" + (folder / "a.mp4").string() +
             "'");
  VideoReader reader;
  ASSERT_TRUE(reader.open(folder / "a.mp4").ok());
  ClipOptions options{
      .frames = FrameSelection::first(8192), .height = 512, .width = 512, .channels = 1};
  EXPECT_EQ(reader.clip_bytes(options), std::size_t{2} << 30);
  std::uint8_t nothing = 0;
  ClipResult result;
  Status status = reader.decode(options, {&nothing, 1}, result);
  EXPECT_EQ(status.error().kind(), ErrorKind::usage)
      << text(status);  // only the destination is wrong
  options.frames = FrameSelection::first(8193);
  EXPECT_TRUE(names(reader.decode(options, {&nothing, 1}, result), "decoded_bytes"));
}

TEST(DefaultLimits, OfGif) {
  auto open = [](int width, int height, int frames, int delay_ms) {
    std::string file = "GIF89a" + little_endian(static_cast<std::uint32_t>(width), 2) +
                       little_endian(static_cast<std::uint32_t>(height), 2) + std::string(3, '\0');
    for (int i = 0; i < frames; ++i) {
      file += std::string("\x21\xF9\x04\0", 4) +
              little_endian(static_cast<std::uint32_t>(delay_ms / 10), 2) + std::string(2, '\0');
      file += std::string(",\0\0\0\0\1\0\1\0\0\2\2\x44\1\0", 16);
    }
    GifReader reader;
    return reader.open(bytes_of(file + ";"));
  };
  EXPECT_EQ(text(open(4096, 4096, 1, 100)), "ok");
  EXPECT_TRUE(names(open(4096, 4097, 1, 100), "frame_pixels"));
  EXPECT_EQ(text(open(8, 8, 6, 600'000)), "ok");  // 3,600 s
  EXPECT_TRUE(names(open(8, 8, 6, 600'010), "duration_seconds"));
}

// The header of a WAV file that claims so much; nothing after it is read here.
Status open_wav(std::uint32_t channels, std::uint32_t rate_hz, std::uint32_t samples) {
  const std::uint32_t bytes = samples * channels;
  const std::string header = "RIFF" + little_endian(bytes + 36, 4) + "WAVEfmt " +
                             little_endian(16, 4) + little_endian(1, 2) +
                             little_endian(channels, 2) + little_endian(rate_hz, 4) +
                             little_endian(rate_hz * channels, 4) + little_endian(channels, 2) +
                             little_endian(8, 2) + "data" + little_endian(bytes, 4);
  TemporaryFolder folder;
  write_bytes(folder / "a.wav", bytes_of(header));
  std::filesystem::resize_file(folder / "a.wav", header.size() + bytes);  // a hole: takes no room
  AudioReader reader;
  return reader.open(folder / "a.wav");
}

TEST(DefaultLimits, OfAudio) {
  EXPECT_EQ(text(open_wav(8, 48'000, 100)), "ok");
  EXPECT_TRUE(names(open_wav(9, 48'000, 100), "channels"));
  EXPECT_EQ(text(open_wav(1, 384'000, 100)), "ok");
  EXPECT_TRUE(names(open_wav(1, 384'001, 100), "sample_rate_hz"));
  EXPECT_EQ(text(open_wav(1, 8'000, 8'000 * 3'600)), "ok");
  EXPECT_TRUE(names(open_wav(1, 8'000, 8'000 * 3'600 + 1), "duration_seconds"));
}

// Binary PLY and STL tell their counts, and are believed or refused before they are read.
TEST(DefaultLimits, OfMeshes) {
  auto ply = [](std::uint32_t vertices, std::uint32_t faces) {
    const std::string header =
        "ply\nformat binary_little_endian 1.0\nelement vertex " + std::to_string(vertices) +
        "\nproperty float x\nproperty float y\nproperty float z\nelement face " +
        std::to_string(faces) + "\nproperty list uchar int vertex_indices\nend_header\n";
    Mesh mesh;
    return text(decode_mesh(bytes_of(header + std::string(36, '\0')), {}, mesh));
  };
  EXPECT_EQ(ply(10'000'000, 1).find("limit"), std::string::npos) << ply(10'000'000, 1);
  EXPECT_NE(ply(10'000'001, 1).find("limits.vertices"), std::string::npos) << ply(10'000'001, 1);
  EXPECT_EQ(ply(3, 10'000'000).find("limit"), std::string::npos) << ply(3, 10'000'000);
  EXPECT_NE(ply(3, 10'000'001).find("limits.faces"), std::string::npos) << ply(3, 10'000'001);
}

}  // namespace
}  // namespace millrace
