// Files that lie, end early or have flipped bits: limits hold, messages help, nothing crashes.
#include "tests/decoders/image/image_files.h"
#include "tests/decoders/image/jpeg_files.h"

#include <millrace/decoders/image/image_transform.h>
#include <millrace/decoders/image/image_write.h>

#include <cstdio>
#include <cstring>
#include <ctime>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace millrace {
namespace {

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

std::vector<std::byte> png(std::int64_t width, std::int64_t height) {
  Array image = Array::empty(DType::uint8, {height, width, 3});
  std::memset(image.data(), 50, image.bytes());
  std::vector<std::byte> file;
  EXPECT_TRUE(encode_png(image, {.compression = 1}, file).ok());
  return file;
}

void put_big_endian(std::vector<std::byte>& bytes, std::size_t at, std::uint32_t value) {
  for (int i = 0; i < 4; ++i) bytes[at + i] = std::byte(value >> (24 - 8 * i));
}

// A text chunk of this length before the pixels. libpng skips its contents and only warns about
// the checksum.
std::vector<std::byte> png_with_text(std::uint32_t length) {
  std::vector<std::byte> file = png(4, 4);
  std::vector<std::byte> chunk(length + 12);
  put_big_endian(chunk, 0, length);
  std::memcpy(chunk.data() + 4, "tEXt", 4);
  file.insert(file.begin() + 33, chunk.begin(), chunk.end());
  return file;
}

std::string outcome(std::span<const std::byte> bytes, const ImageOptions& options) {
  Array pixels;
  Status status = decode_whole(bytes, options, pixels);
  return status.ok() ? "ok" : status.error().what();
}

TEST(ImageLimits, HoldAtTheLimitAndOneBeyond) {
  const auto file = png(40, 30);
  EXPECT_EQ(outcome(file, {.limits = {.image_pixels = 1200}}), "ok");
  EXPECT_NE(outcome(file, {.limits = {.image_pixels = 1199}}).find("limit of 1199 in all"),
            std::string::npos);
  EXPECT_EQ(outcome(file, {.limits = {.image_side = 40}}), "ok");
  EXPECT_NE(outcome(file, {.limits = {.image_side = 39}}).find("limit of 39 a side"),
            std::string::npos);
  const auto text = png_with_text(500);
  EXPECT_EQ(outcome(text, {.limits = {.png_chunk_bytes = 500}}), "ok");
  EXPECT_NE(outcome(text, {.limits = {.png_chunk_bytes = 499}}).find("tEXt has 500 bytes"),
            std::string::npos);
  const auto scans = encode_jpeg(40, 30, {.progressive = true});  // libjpeg's script has 10
  EXPECT_EQ(outcome(scans, {.limits = {.jpeg_scans = 10}}), "ok");
  EXPECT_NE(outcome(scans, {.limits = {.jpeg_scans = 9}}).find("more than 9 scans"),
            std::string::npos);
}

TEST(ImageLimits, AreThoseOfTheDefaultAndHoldForTheTransformToo) {
  Array row = Array::empty(DType::uint8, {3, 8, 8});
  auto claims = [&](std::uint32_t width, std::uint32_t height) {
    std::vector<std::byte> file = png(4, 4);
    put_big_endian(file, 16, width);
    put_big_endian(file, 20, height);
    Status status = transform_image(file, {}, row);
    return status.ok() ? std::string("ok") : std::string(status.error().what());
  };
  EXPECT_NE(claims(16'385, 1).find("16384 a side"), std::string::npos);
  EXPECT_EQ(claims(16'384, 5'461).find("limit"), std::string::npos);  // 89,473,024 pixels
  EXPECT_NE(claims(16'384, 5'462).find("89478485 in all"), std::string::npos);
  EXPECT_NE(claims(1'000'000, 1'000).find("a side"), std::string::npos);
  EXPECT_NE(claims(0, 10).find("0 x 10"), std::string::npos);
  EXPECT_NE(claims(0x80000000, 10).find("more than 31 bits"), std::string::npos);
}

// The smallest picture takes longer than a millionth of a second, in each decoder.
TEST(ImageLimits, ADeadlineEndsEveryDecode) {
  TemporaryFolder folder;
  run_python(
      "import sys, numpy as np\n"
      "from PIL import Image\n"
      "im = Image.fromarray(np.arange(60 * 40 * 3, dtype='uint8').reshape(40, 60, 3))\n"
      "for name in ('a.png', 'a.jpg', 'p.jpg', 'a.bmp', 'a.tiff', 'a.webp', 'a.gif', 'a.ppm'):\n"
      "    more = {'progressive': True} if name == 'p.jpg' else {}\n"
      "    im.save(f'{sys.argv[1]}/{name}', **more)\n",
      folder.path().string());
  run_command("ffmpeg -v error -nostdin -i '" + (folder / "a.png").string() + "' '" +
              (folder / "a.exr").string() + "'");
  for (const char* name :
       {"a.png", "a.jpg", "p.jpg", "a.bmp", "a.tiff", "a.webp", "a.gif", "a.ppm", "a.exr"}) {
    SCOPED_TRACE(name);
    const auto bytes = read_bytes(folder / name);
    EXPECT_EQ(outcome(bytes, {}), "ok");
    for (bool tolerant : {false, true}) {
      const std::string late =
          outcome(bytes, {.tolerant = tolerant, .limits = {.deadline_seconds = 1e-6}});
      EXPECT_NE(late.find("cannot decode within the deadline of 1e-06 s"), std::string::npos)
          << late;
    }
  }
}

// It stops where it is, and does not only complain at the end.
TEST(ImageLimits, ADeadlineEndsAManyScanJpegEarly) {
  const auto file = encode_jpeg(1600, 1200, {.scans = 100});
  auto seconds = [&](double deadline) {  // of this process, whatever else the machine does
    const std::clock_t start = std::clock();
    const std::string said = outcome(file, {.limits = {.deadline_seconds = deadline}});
    EXPECT_EQ(said == "ok", deadline > 10) << said;
    return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  };
  const double whole = seconds(60);
  EXPECT_LT(seconds(whole / 20), whole / 2);
}

TEST(ImageErrors, NameTheMediumTheReasonAndWhatToDo) {
  std::vector<std::byte> short_png = png(40, 30), bad_sum = png(40, 30);
  short_png.resize(70);
  bad_sum[bad_sum.size() - 14] ^= std::byte{1};  // of the pixels
  std::vector<std::byte> short_jpeg = encode_jpeg(64, 64, {});
  short_jpeg.resize(short_jpeg.size() - 200);
  std::vector<std::byte> headless_jpeg(short_jpeg.begin(), short_jpeg.begin() + 20);
  const std::pair<const char*, std::vector<std::byte>> files[] = {
      {"empty.jpg", {}},
      {"page.html", bytes_of("<!DOCTYPE html><html>404</html>")},
      {"cut.png", short_png},
      {"bad_checksum.png", bad_sum},
      {"cut.jpg", short_jpeg},
      {"headless.jpg", headless_jpeg},
      {"cut.webp", bytes_of(std::string_view("RIFF\x40\0\0\0WEBPVP8 ", 16))},
      {"no_image.gif", bytes_of(std::string_view("GIF89a\x01\0\x01\0\0\0\0\x3b", 14))},
      {"cut.bmp", bytes_of(std::string_view("BM\0\0\0\0", 6))},
      {"wide.png", png(16'385, 1)},
  };
  for (const auto& [name, bytes] : files) {
    Array pixels;
    Status status = decode_whole(bytes, {}, pixels);
    ASSERT_FALSE(status.ok()) << name;
    status.error().at(name);
    std::printf("| %s |\n", status.error().what());
    EXPECT_EQ(std::string(status.error().what()).find(std::string(name) + ": "), 0U);
    EXPECT_FALSE(status.error().stage().empty());
    EXPECT_FALSE(status.error().reason().empty());
    EXPECT_FALSE(status.error().hint().empty());
  }
}

TEST(Tolerant, FillsTheRestOfATruncatedFileAndSaysSo) {
  TemporaryFolder folder;
  const std::pair<const char*, const char*> files[] = {{"png", "turned_1.png"},
                                                       {"png", "colour2_bits8_adam7_37x29.png"},
                                                       {"gif", "compressed_256_colours.gif"},
                                                       {"webp", "channels3_lossless_61x43.webp"},
                                                       {"webp", "channels4_lossy_61x43.webp"}};
  for (const char* kind : {"png", "gif", "webp"}) {
    make_images(MILLRACE_PYTHON, kind, folder.path());
  }
  for (const auto& [kind, name] : files) {
    SCOPED_TRACE(name);
    std::vector<std::byte> bytes = read_bytes(folder / name);
    bytes.resize(bytes.size() * 2 / 3);
    Array pixels;
    EXPECT_FALSE(decode_whole(bytes, {}, pixels).ok());
    ImageResult result;
    Status status = decode_whole(bytes, {.tolerant = true}, pixels, &result);
    ASSERT_TRUE(status.ok()) << status.error().what();
    EXPECT_TRUE(result.damaged);
    EXPECT_FALSE(result.damage.empty());
  }
}

// 2,000 files per format: cut off, with flipped bits, or both, read in every way there is.
void survive(const std::vector<std::vector<std::byte>>& seeds) {
  std::mt19937 random(17);
  const DecodeLimits limits{.image_pixels = 1 << 18, .image_side = 4096};
  Array row = Array::empty(DType::uint8, {3, 16, 16});
  for (int i = 0; i < 2000; ++i) {
    std::vector<std::byte> bytes = seeds[static_cast<std::size_t>(i) % seeds.size()];
    if (i % 3 != 0) bytes.resize(1 + random() % bytes.size());
    for (unsigned flips = i % 3 == 1 ? 0 : 1 + random() % 8; flips > 0; --flips) {
      // Half of them where headers are.
      const std::size_t reach =
          random() % 2 == 0 ? std::min<std::size_t>(bytes.size(), 64) : bytes.size();
      bytes[random() % reach] ^= std::byte(1U << random() % 8);
    }
    Array pixels;
    for (bool tolerant : {false, true}) {
      Status whole = decode_whole(
          bytes, {.channels = i % 2 == 0 ? 3 : 4, .tolerant = tolerant, .limits = limits}, pixels);
      Status part = transform_image(
          bytes, {.fast = tolerant, .image = {.tolerant = tolerant, .limits = limits}}, row);
      if (!whole.ok()) {
        EXPECT_FALSE(whole.error().reason().empty());
      }
      if (!part.ok()) {
        EXPECT_FALSE(part.error().reason().empty());
      }
    }
  }
}

void survive_kind(const char* kind, const std::string& ending) {
  TemporaryFolder folder;
  std::vector<std::vector<std::byte>> seeds;
  for (const MadeImage& image : make_images(MILLRACE_PYTHON, kind, folder.path())) {
    if (image.name.ends_with(ending)) seeds.push_back(read_bytes(folder / image.name));
  }
  ASSERT_FALSE(seeds.empty());
  survive(seeds);
}

TEST(Hostile, JpegSurvives2000DamagedFiles) {
  survive_kind("jpeg", ".jpg");
}
TEST(Hostile, PngSurvives2000DamagedFiles) {
  survive_kind("png", ".png");
}
TEST(Hostile, WebpSurvives2000DamagedFiles) {
  survive_kind("webp", ".webp");
}
TEST(Hostile, GifSurvives2000DamagedFiles) {
  survive_kind("gif", ".gif");
}
TEST(Hostile, BmpSurvives2000DamagedFiles) {
  survive_kind("other", ".bmp");
}
TEST(Hostile, TiffSurvives2000DamagedFiles) {
  survive_kind("other", ".tiff");
}
TEST(Hostile, TgaSurvives2000DamagedFiles) {
  survive_kind("other", ".tga");
}
TEST(Hostile, PnmSurvives2000DamagedFiles) {
  survive_kind("other", ".ppm");
}

}  // namespace
}  // namespace millrace
