// Resizing, cropping and turning against Pillow and numpy, at every pixel.
#include "tests/decoders/image/image_files.h"

#include <millrace/decoders/resize/resize.h>

#include <cstring>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace millrace {
namespace {

constexpr Filter filters[] = {Filter::nearest, Filter::box, Filter::bilinear, Filter::bicubic,
                              Filter::lanczos};

// Columns first, then rows, as in every Pillow up to 12; 13 chooses the order by cost, and so
// rounds some pixels to the other side. Debian's is the reference here. 200 pairs of sizes, each
// with all filters; Pillow's results follow each other in one file.
constexpr const char* pillow_resize = R"(
import sys, numpy as np
from PIL import Image
folder, rng = sys.argv[1], np.random.default_rng(9)
R = Image.Resampling if hasattr(Image, 'Resampling') else Image
filters = (R.NEAREST, R.BOX, R.BILINEAR, R.BICUBIC, R.LANCZOS)
source, expected = open(folder + '/in', 'wb'), open(folder + '/out', 'wb')
for i in range(200):
    w, h, ow, oh = (int(v) for v in rng.integers(1, 260, 4))
    if i % 10 == 0: ow = w
    if i % 10 == 1: oh = h
    if i % 10 == 2: w, h = w * 9, h * 7
    channels = (1, 3, 4)[i % 3]
    pixels = rng.integers(0, 256, (h, w, channels)).astype(np.uint8)
    if i % 2: pixels = np.where(pixels > 127, 255, 0).astype(np.uint8)
    source.write(pixels.tobytes())
    image = Image.fromarray(pixels[..., 0] if channels == 1 else pixels)
    for f in filters: expected.write(image.resize((ow, oh), f).tobytes())
    print(w, h, ow, oh, channels)
)";

struct Case {
  std::int64_t width, height, out_width, out_height;
  int channels;
};

Array take(const std::vector<std::byte>& all, std::size_t& at, const Shape& shape) {
  Array array = Array::empty(DType::uint8, shape);
  std::memcpy(array.data(), all.data() + at, array.bytes());
  at += array.bytes();
  return array;
}

TEST(Resize, EqualsPillowFor200SizePairsAndAllFilters) {
  TemporaryFolder folder;
  std::istringstream lines(run_python(pillow_resize, folder.path().string(), debian_python));
  const auto source = read_bytes(folder / "in"), expected = read_bytes(folder / "out");
  std::size_t in_at = 0, out_at = 0;
  int cases = 0;
  for (Case c{}; lines >> c.width >> c.height >> c.out_width >> c.out_height >> c.channels;) {
    SCOPED_TRACE(testing::Message() << c.width << " x " << c.height << " to " << c.out_width
                                    << " x " << c.out_height << ", " << c.channels << " channels");
    Array image = take(source, in_at, {c.height, c.width, c.channels});
    for (Filter filter : filters) {
      Array wanted = take(expected, out_at, {c.out_height, c.out_width, c.channels});
      Array got = Array::empty(DType::uint8, {c.out_height, c.out_width, c.channels});
      Status status = resize_image(image, {.filter = filter}, got);
      ASSERT_TRUE(status.ok()) << status.error().what();
      ASSERT_EQ(largest_difference(pixels_of(got), pixels_of(wanted)), 0)
          << "filter " << static_cast<int>(filter);
    }
    ++cases;
  }
  EXPECT_EQ(cases, 200);
}

Array noise(std::mt19937& random, const Shape& shape) {
  Array array = Array::empty(DType::uint8, shape);
  for (auto& value : array.as<std::uint8_t>()) value = static_cast<std::uint8_t>(random());
  return array;
}

// The part of `whole` at (top, left), mirrored or not, pixel by pixel.
Array cut(const Array& whole, std::int64_t top, std::int64_t left, const Shape& shape, bool flip) {
  Array part = Array::empty(DType::uint8, shape);
  auto from = whole.as<std::uint8_t>(), to = part.as<std::uint8_t>();
  std::size_t at = 0;
  for (std::int64_t y = 0; y < shape[0]; ++y) {
    for (std::int64_t x = 0; x < shape[1]; ++x) {
      const std::int64_t column = left + (flip ? shape[1] - 1 - x : x);
      for (std::int64_t c = 0; c < shape[2]; ++c) {
        to[at++] = from[static_cast<std::size_t>(
            ((top + y) * whole.shape()[1] + column) * whole.shape()[2] + c)];
      }
    }
  }
  return part;
}

TEST(Resize, OfACropEqualsTheCropOfTheWhole) {
  std::mt19937 random(3);
  auto below = [&](std::int64_t n) { return static_cast<std::int64_t>(random() % n); };
  for (int i = 0; i < 300; ++i) {
    const int channels = i % 3 == 0 ? 1 : i % 3 == 1 ? 3 : 4;
    Array image = noise(random, {1 + below(90), 1 + below(90), channels});
    ResizeOptions options{
        .filter = filters[i % 5], .width = 1 + below(120), .height = 1 + below(120)};
    Array whole = Array::empty(DType::uint8, {options.height, options.width, channels});
    ASSERT_TRUE(resize_image(image, options, whole).ok());
    const Shape shape{1 + below(options.height), 1 + below(options.width), channels};
    options.top = below(options.height - shape[0] + 1);
    options.left = below(options.width - shape[1] + 1);
    options.flip = i % 2 == 0;
    Array part = Array::empty(DType::uint8, shape);
    ASSERT_TRUE(resize_image(image, options, part).ok());
    Array wanted = cut(whole, options.top, options.left, shape, options.flip);
    ASSERT_EQ(largest_difference(pixels_of(part), pixels_of(wanted)), 0) << "case " << i;
  }
}

TEST(Resize, TurnsAsNumpysRot90) {
  std::mt19937 random(5);
  for (int channels : {1, 3, 4}) {
    Array image = noise(random, {37, 70, channels});
    auto from = image.as<std::uint8_t>();
    for (int turns = -4; turns <= 5; ++turns) {
      const int t = ((turns % 4) + 4) % 4;
      const std::int64_t height = t % 2 == 0 ? 37 : 70, width = t % 2 == 0 ? 70 : 37;
      Array turned = Array::empty(DType::uint8, {height, width, channels});
      ASSERT_TRUE(rotate_image(image, turns, turned).ok());
      auto to = turned.as<std::uint8_t>();
      for (std::int64_t y = 0; y < height; ++y) {
        for (std::int64_t x = 0; x < width; ++x) {
          // rot90 once: out[y][x] = in[x][last column - y].
          std::int64_t sy = y, sx = x;
          if (t == 1) sy = x, sx = 69 - y;
          if (t == 2) sy = 36 - y, sx = 69 - x;
          if (t == 3) sy = 36 - x, sx = y;
          for (std::int64_t c = 0; c < channels; ++c) {
            ASSERT_EQ(to[static_cast<std::size_t>((y * width + x) * channels + c)],
                      from[static_cast<std::size_t>((sy * 70 + sx) * channels + c)]);
          }
        }
      }
    }
  }
}

TEST(Resize, FlipsLeftToRight) {
  std::mt19937 random(6);
  Array image = noise(random, {9, 31, 3});
  Array flipped = Array::empty(DType::uint8, {9, 31, 3});
  ASSERT_TRUE(flip_image(image, flipped).ok());
  EXPECT_EQ(pixels_of(flipped), pixels_of(cut(image, 0, 0, {9, 31, 3}, true)));
}

TEST(Resize, SaysWhatIsWrongWithItsArguments) {
  Array image = Array::empty(DType::uint8, {8, 8, 3});
  auto message = [&](const ResizeOptions& options, const Array& to) {
    Status status = resize_image(image, options, to);
    return status.ok() ? std::string("ok") : std::string(status.error().what());
  };
  EXPECT_NE(message({.width = 10, .left = 5}, image).find("a crop of 8 x 8 at (5, 0)"),
            std::string::npos);
  EXPECT_NE(message({}, Array::empty(DType::uint8, {8, 8})).find("the destination has 1"),
            std::string::npos);
  EXPECT_NE(message({}, Array::empty(DType::float32, {8, 8, 3})).find("must be uint8"),
            std::string::npos);
  EXPECT_NE(message({}, Array::empty(DType::uint8, {0, 8, 3})).find("empty"), std::string::npos);
}

}  // namespace
}  // namespace millrace
