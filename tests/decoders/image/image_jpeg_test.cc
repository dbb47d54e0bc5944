// What is special about JPEG: odd samplings, and reading a part instead of the whole.
#include "tests/decoders/image/image_files.h"
#include "tests/decoders/image/jpeg_files.h"

#include <millrace/decoders/image/image_reader.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace millrace {

using namespace detail;

namespace {

constexpr std::pair<int, int> samplings[] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}, {4, 2}};

TEST(Jpeg, EqualsPillowForSamplingsThatItCannotWrite) {
  TemporaryFolder folder;
  for (auto [h, v] : samplings) {
    for (bool progressive : {false, true}) {
      for (bool inks : {false, true}) {
        if (inks && h * v == 8) continue;  // more blocks than a scan may interleave
        const JpegKind kind{h, v, progressive, inks, progressive ? 0U : 3U};
        const std::string name = std::string(inks ? "ycck" : "ycc") + std::to_string(h) +
                                 std::to_string(v) + (progressive ? "p" : "b") + ".jpeg";
        write_bytes(folder / name, encode_jpeg(75, 58, kind));
      }
    }
  }
  int compared = 0;
  for (const MadeImage& image : make_images(debian_python, "jpeg", folder.path())) {
    if (!image.name.ends_with(".jpeg")) continue;
    SCOPED_TRACE(image.name);
    Array pixels;
    Status status = decode_whole(read_bytes(folder / image.name), {}, pixels);
    ASSERT_TRUE(status.ok()) << status.error().what();
    EXPECT_EQ(largest_difference(pixels_of(pixels), read_bytes(folder / (image.name + ".rgb"))), 0);
    ++compared;
  }
  EXPECT_EQ(compared, 22);
}

class Collect : public RowSink {
 public:
  explicit Collect(std::size_t bytes) : bytes_(bytes) {}
  void rows(const std::uint8_t* first, std::size_t stride, std::int64_t count) override {
    for (std::int64_t i = 0; i < count; ++i, first += stride) {
      pixels.insert(pixels.end(), first, first + bytes_);
    }
  }
  std::vector<std::uint8_t> pixels;

 private:
  std::size_t bytes_;
};

std::vector<std::uint8_t> read_part(Bytes bytes, const Region& region, int eighths) {
  Header header;
  EXPECT_TRUE(read_header(bytes, header).ok());
  Collect collect(static_cast<std::size_t>(region.width() * header.channels));
  Damage damage;
  Status status =
      read_rows(bytes, header, {.region = region, .jpeg_eighths = eighths}, collect, damage);
  EXPECT_TRUE(status.ok()) << status.error().what();
  return collect.pixels;
}

std::vector<std::uint8_t> cut(const std::vector<std::uint8_t>& whole, std::int64_t width,
                              const Region& region) {
  std::vector<std::uint8_t> part;
  for (std::int64_t y = region.y0; y < region.y1; ++y) {
    const auto row = whole.begin() + (y * width + region.x0) * 3;
    part.insert(part.end(), row, row + region.width() * 3);
  }
  return part;
}

// jpeg_crop_scanline and jpeg_skip_scanlines must not be felt by any pixel that is kept.
TEST(Jpeg, APartEqualsThatPartOfTheWhole) {
  std::mt19937 random(11);
  auto below = [&](std::int64_t n) { return static_cast<std::int64_t>(random() % n); };
  for (auto [h, v] : samplings) {
    for (bool progressive : {false, true}) {
      for (int eighths : {8, 4, 2, 1}) {
        const std::int64_t full_width = 40 + below(200), full_height = 40 + below(150);
        const auto file =
            encode_jpeg(static_cast<int>(full_width), static_cast<int>(full_height),
                        {h, v, progressive, false, static_cast<unsigned>(below(2) * 5)});
        const std::int64_t width = (full_width * eighths + 7) / 8;
        const std::int64_t height = (full_height * eighths + 7) / 8;
        const auto whole = read_part(file, {0, 0, width, height}, eighths);
        for (int i = 0; i < 60; ++i) {
          Region region;
          region.x0 = below(width);
          region.y0 = below(height);
          region.x1 = region.x0 + 1 + below(width - region.x0);
          region.y1 = region.y0 + 1 + below(height - region.y0);
          ASSERT_TRUE(read_part(file, region, eighths) == cut(whole, width, region))
              << "sampling " << h << "x" << v << ", progressive " << progressive << ", " << eighths
              << "/8, picture " << width << " x " << height << ", part " << region.x0 << ","
              << region.y0 << " to " << region.x1 << "," << region.y1;
        }
      }
    }
  }
}

TEST(Jpeg, TruncatedIsAnErrorUnlessTolerant) {
  for (bool progressive : {false, true}) {
    std::vector<std::byte> file = encode_jpeg(160, 120, {.progressive = progressive});
    Array whole, part;
    ASSERT_TRUE(decode_whole(file, {}, whole).ok());
    file.resize(file.size() * 2 / 3);
    Status status = decode_whole(file, {}, part);
    ASSERT_FALSE(status.ok());
    EXPECT_NE(std::string(status.error().what()).find("Premature end of JPEG file"),
              std::string::npos)
        << status.error().what();
    ImageResult result;
    ASSERT_TRUE(decode_whole(file, {.tolerant = true}, part, &result).ok());
    EXPECT_TRUE(result.damaged);
    EXPECT_NE(result.damage.find("Premature end"), std::string::npos);
    if (!progressive) {  // the upper half is there
      EXPECT_EQ(std::memcmp(whole.data(), part.data(), part.bytes() / 2), 0);
    }
  }
}

}  // namespace
}  // namespace millrace
