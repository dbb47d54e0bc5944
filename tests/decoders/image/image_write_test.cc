#include "tests/decoders/image/image_files.h"

#include <millrace/decoders/image/image_write.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace millrace {
namespace {

Array noise(DType dtype, const Shape& shape) {
  std::mt19937 random(8);
  Array array = Array::empty(dtype, shape);
  for (std::size_t i = 0; i < array.bytes(); ++i) array.data()[i] = std::byte(random());
  return array;
}

TEST(PngWriting, IsReadBackByPillow) {
  TemporaryFolder folder;
  for (DType dtype : {DType::uint8, DType::uint16}) {
    for (int channels : {1, 2, 3, 4}) {
      Array image = noise(dtype, {19, 33, channels});
      std::vector<std::byte> file;
      Status status = encode_png(image, {}, file);
      ASSERT_TRUE(status.ok()) << status.error().what();
      write_bytes(folder / "a.png", file);
      const std::string raw = run_python(
          "import sys, numpy as np\n"
          "from PIL import Image\n"
          "a = np.array(Image.open(sys.argv[1]))\n"
          "sys.stdout.buffer.write(a.tobytes())\n",
          (folder / "a.png").string());
      std::vector<std::byte> wanted = pixels_of(image);
      if (dtype == DType::uint16 && channels > 1) {  // Pillow keeps the upper bytes
        std::vector<std::byte> upper;
        for (std::size_t i = 1; i < wanted.size(); i += 2) {
          // Pillow shows grey and alpha of 16 bits as RGBA.
          const int copies = channels == 2 && i % 4 == 1 ? 3 : 1;
          upper.insert(upper.end(), copies, wanted[i]);
        }
        wanted = upper;
      }
      ASSERT_EQ(raw.size(), wanted.size());
      EXPECT_EQ(std::memcmp(raw.data(), wanted.data(), raw.size()), 0)
          << name_of(dtype) << ", " << channels << " channels";
    }
  }
}

TEST(PngWriting, RefusesWhatPngCannotHold) {
  std::vector<std::byte> file;
  EXPECT_FALSE(encode_png(Array::empty(DType::float32, {4, 4}), {}, file).ok());
  EXPECT_FALSE(encode_png(Array::empty(DType::uint8, {4, 4, 5}), {}, file).ok());
  EXPECT_FALSE(encode_png(Array::empty(DType::uint8, {0, 4}), {}, file).ok());
  EXPECT_FALSE(encode_png(Array::empty(DType::uint8, {4, 4}), {.compression = 10}, file).ok());
}

// torchvision's make_grid and save_image, written out in numpy.
constexpr const char* grid_reference = R"(
import sys, numpy as np
kind, n, c, h, w, columns, padding, pad, path = sys.argv[1:]
n, c, h, w, columns, padding = map(int, (n, c, h, w, columns, padding))
a = np.fromfile(path, np.float32 if kind == 'float32' else np.uint8).reshape(n, c, h, w)
if c == 1: a = np.repeat(a, 3, 1)
if n == 1: grid = a[0]
else:
    x = min(columns, n); y = -(-n // x)
    grid = np.full((a.shape[1], (h + padding) * y + padding, (w + padding) * x + padding), float(pad), a.dtype)
    for k in range(n):
        top, left = k // x * (h + padding) + padding, k % x * (w + padding) + padding
        grid[:, top:top + h, left:left + w] = a[k]
if kind == 'float32': grid = np.clip(grid * np.float32(255) + np.float32(.5), 0, 255).astype(np.uint8)
sys.stdout.buffer.write(np.ascontiguousarray(grid.transpose(1, 2, 0)).tobytes())
)";

TEST(Grid, EqualsTorchvisions) {
  TemporaryFolder folder;
  const Shape shapes[] = {{7, 3, 5, 6}, {1, 3, 5, 6}, {4, 1, 3, 9}, {16, 4, 2, 2}};
  for (const Shape& shape : shapes) {
    for (DType dtype : {DType::uint8, DType::float32}) {
      Array images = noise(dtype, shape);
      if (dtype == DType::float32) {
        std::mt19937 random(3);
        for (float& v : images.as<float>()) v = static_cast<float>(random() % 3000) / 2000 - 0.2F;
      }
      write_bytes(folder / "in", pixels_of(images));
      const double pad = dtype == DType::uint8 ? 128 : 0.5;
      std::string arguments(name_of(dtype));
      for (std::int64_t extent : shape) arguments.append(" ").append(std::to_string(extent));
      arguments += " 3 2 " + std::to_string(pad) + " " + (folder / "in").string();
      const std::string wanted = run_python(grid_reference, arguments);
      Array grid = make_grid(images, {.columns = 3, .padding = 2, .pad_value = pad});
      ASSERT_EQ(grid.bytes(), wanted.size()) << to_string(grid);
      EXPECT_EQ(std::memcmp(grid.data(), wanted.data(), wanted.size()), 0);
    }
  }
}

TEST(Grid, StripPutsFramesBelowEachOther) {
  Array frames = noise(DType::uint8, {4, 3, 5, 6});
  Array strip = make_strip(frames);
  ASSERT_EQ(strip.shape(), Shape({20, 6, 3}));
  auto from = frames.as<std::uint8_t>(), to = strip.as<std::uint8_t>();
  for (std::size_t i = 0; i < to.size(); ++i) {
    const std::size_t c = i % 3, x = i / 3 % 6, y = i / 18;
    ASSERT_EQ(to[i], from[((y / 5 * 3 + c) * 5 + y % 5) * 6 + x]);
  }
}

TEST(Grid, RefusesOtherShapes) {
  EXPECT_THROW(make_grid(Array::empty(DType::uint8, {3, 5, 6})), Error);
  EXPECT_THROW(make_grid(Array::empty(DType::int64, {1, 3, 5, 6})), Error);
  EXPECT_THROW(make_grid(Array::empty(DType::uint8, {1, 3, 5, 6}), {.columns = 0}), Error);
}

}  // namespace
}  // namespace millrace
