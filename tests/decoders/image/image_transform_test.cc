// The fused transform against its steps done by Pillow with torchvision's rules for sizes.
#include "tests/decoders/image/image_files.h"

#include <millrace/decoders/image/image_transform.h>

#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace millrace {
namespace {

// torchvision's Resize(size), hflip and CenterCrop(crop), written out.
constexpr const char* classic = R"(
import sys, numpy as np
from PIL import Image, ImageOps
folder, rng = sys.argv[1], np.random.default_rng(2)
R = Image.Resampling
filters = (R.NEAREST, R.BOX, R.BILINEAR, R.BICUBIC, R.LANCZOS)
for i in range(120):
    w, h = (int(v) for v in rng.integers(20, 300, 2))
    size = int(rng.integers(8, 120)); crop = (int(rng.integers(1, size + 1)), int(rng.integers(1, size + 1)))
    if i % 2: crop = (size, size)
    flip, f = int(rng.integers(2)), 2 if i % 2 else int(rng.integers(5))
    y, x = np.mgrid[0:h, 0:w]
    base = np.stack([127 + 90 * np.sin(x / (3 + c)) * np.cos(y / (5 + c)) + rng.normal(0, 9, (h, w)) for c in range(4)], -1)
    base = np.clip(base, 0, 255).astype(np.uint8)
    mode = ('RGB', 'L', 'RGBA', 'RGB', 'CMYK')[i % 5]
    image = Image.fromarray(base[..., 0] if mode == 'L' else base[..., :3] if mode == 'RGB' else base, mode)
    name = folder + '/%d' % i
    exif = Image.Exif(); exif[0x0112] = int(rng.integers(1, 9)) if i % 4 == 0 else 1
    image.save(name, 'PNG' if mode == 'RGBA' or i % 7 == 0 and mode != 'CMYK' else 'JPEG', exif=exif)
    image = ImageOps.exif_transpose(Image.open(name)).convert('RGB')
    w, h = image.size
    short, long = (w, h) if w <= h else (h, w)
    new = size, int(size * long / short)
    image = image.resize(new if w <= h else new[::-1], filters[f])
    if flip: image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    w, h = image.size
    top, left = int(round((h - crop[0]) / 2.0)), int(round((w - crop[1]) / 2.0))
    image = image.crop((left, top, left + crop[1], top + crop[0]))
    open(name + '.rgb', 'wb').write(image.tobytes())
    print(i, size, crop[0], crop[1], flip, f)
)";

struct Case {
  std::string name;
  std::int64_t size, height, width;
  int flip, filter;
};

void expect_layouts(const TemporaryFolder& folder, const Case& c) {
  const auto bytes = read_bytes(folder / c.name);
  const auto wanted = read_bytes(folder / (c.name + ".rgb"));
  TransformOptions options{.size = c.size,
                           .filter = static_cast<Filter>(c.filter),
                           .flip = c.flip != 0,
                           .layout = Layout::hwc};
  Array hwc = Array::empty(DType::uint8, {c.height, c.width, 3});
  Status status = transform_image(bytes, options, hwc);
  ASSERT_TRUE(status.ok()) << status.error().what();
  ASSERT_EQ(largest_difference(pixels_of(hwc), wanted), 0);
  options.layout = Layout::chw;
  Array chw = Array::empty(DType::uint8, {3, c.height, c.width});
  Array floats = Array::empty(DType::float32, {3, c.height, c.width});
  ASSERT_TRUE(transform_image(bytes, options, chw).ok());
  ASSERT_TRUE(transform_image(bytes, options, floats).ok());
  const std::int64_t plane = c.height * c.width;
  auto planes = chw.as<std::uint8_t>();
  auto units = floats.as<float>();
  for (std::int64_t i = 0; i < plane * 3; ++i) {
    const auto expected =
        std::to_integer<std::uint8_t>(wanted[static_cast<std::size_t>(i % plane * 3 + i / plane)]);
    ASSERT_EQ(planes[static_cast<std::size_t>(i)], expected);
    ASSERT_EQ(units[static_cast<std::size_t>(i)], static_cast<float>(expected) / 255.0F);
  }
}

TEST(Transform, EqualsItsStepsDoneByPillow) {
  TemporaryFolder folder;
  std::istringstream lines(run_python(classic, folder.path().string(), debian_python));
  int cases = 0;
  for (Case c; lines >> c.name >> c.size >> c.height >> c.width >> c.flip >> c.filter; ++cases) {
    SCOPED_TRACE(c.name);
    expect_layouts(folder, c);
  }
  EXPECT_EQ(cases, 120);
}

TEST(Transform, FastStaysCloseToExact) {
  TemporaryFolder folder;
  run_python(
      "import sys, numpy as np\n"
      "from PIL import Image\n"
      "y, x = np.mgrid[0:900, 0:1300]\n"
      "a = np.stack([127 + 100 * np.sin(x / 40) * np.cos(y / (50 + 9 * c)) for c in range(3)], "
      "-1)\n"
      "Image.fromarray(a.astype('uint8')).save(sys.argv[1] + '/a.jpg', quality=92)\n",
      folder.path().string());
  const auto bytes = read_bytes(folder / "a.jpg");
  Array exact = Array::empty(DType::uint8, {3, 100, 100});
  Array fast = Array::empty(DType::uint8, {3, 100, 100});
  ASSERT_TRUE(transform_image(bytes, {}, exact).ok());
  ASSERT_TRUE(transform_image(bytes, {.fast = true}, fast).ok());
  EXPECT_LE(largest_difference(pixels_of(exact), pixels_of(fast)), 6);
  EXPECT_NE(pixels_of(exact), pixels_of(fast));
}

TEST(Transform, SaysWhatIsWrongWithItsArguments) {
  TemporaryFolder folder;
  make_images(MILLRACE_PYTHON, "gif", folder.path());
  const auto bytes = read_bytes(folder / "grey.gif");
  auto message = [&](const TransformOptions& options, const Array& to) {
    Status status = transform_image(bytes, options, to);
    return status.ok() ? std::string("ok") : std::string(status.error().what());
  };
  EXPECT_NE(message({.size = 8}, Array::empty(DType::uint8, {3, 9, 9})).find("does not fit"),
            std::string::npos);
  EXPECT_NE(message({}, Array::empty(DType::uint8, {9, 9, 3})).find("[channels, height, width]"),
            std::string::npos);
  EXPECT_NE(message({}, Array::empty(DType::int16, {3, 9, 9})).find("uint8 or float32"),
            std::string::npos);
}

}  // namespace
}  // namespace millrace
