// Every format against Pillow, pixel by pixel.
#include "tests/decoders/image/image_files.h"

#include <millrace/decoders/image/image.h>

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace millrace {
namespace {

// Compares all conversions for which make_images.py wrote what Pillow gives.
void expect_as_pillow(const TemporaryFolder& folder, const MadeImage& image) {
  SCOPED_TRACE(image.name);
  const std::vector<std::byte> bytes = read_bytes(folder / image.name);
  ImageInfo info;
  Status probed = probe_image(bytes, info);
  ASSERT_TRUE(probed.ok()) << probed.error().what();
  EXPECT_EQ(info.width, image.width);
  EXPECT_EQ(info.height, image.height);
  const std::pair<const char*, int> conversions[] = {{".rgb", 3}, {".rgba", 4}, {".l", 1}};
  for (const auto& [suffix, channels] : conversions) {
    if (!std::filesystem::exists(folder / (image.name + suffix))) continue;
    SCOPED_TRACE(suffix);
    Array pixels;
    ImageResult result;
    Status status = decode_whole(bytes, {.channels = channels}, pixels, &result);
    ASSERT_TRUE(status.ok()) << status.error().what();
    EXPECT_FALSE(result.damaged);
    EXPECT_EQ(largest_difference(pixels_of(pixels), read_bytes(folder / (image.name + suffix))), 0);
  }
}

// Where two libraries round differently.
void expect_near(const TemporaryFolder& folder, const MadeImage& image) {
  if (!std::filesystem::exists(folder / (image.name + ".near"))) return;
  Array pixels;
  Status status = decode_whole(read_bytes(folder / image.name), {}, pixels);
  ASSERT_TRUE(status.ok()) << status.error().what();
  const int worst =
      largest_difference(pixels_of(pixels), read_bytes(folder / (image.name + ".near")));
  EXPECT_GE(worst, 0) << image.name;
  EXPECT_LE(worst, 3) << image.name;
}

void expect_all_as_pillow(const std::string& interpreter, const std::string& kind,
                          std::size_t at_least) {
  TemporaryFolder folder;
  const std::vector<MadeImage> images = make_images(interpreter, kind, folder.path());
  EXPECT_GE(images.size(), at_least);
  for (const MadeImage& image : images) {
    expect_as_pillow(folder, image);
    expect_near(folder, image);
  }
}

TEST(Png, EqualsPillowForEveryColourTypeBitDepthAndInterlace) {
  expect_all_as_pillow(MILLRACE_PYTHON, "png", 160);
}

TEST(Jpeg, EqualsPillowOfTheSameLibrary) {
  expect_all_as_pillow(debian_python, "jpeg", 60);
}

TEST(WebP, EqualsPillowOfTheSameLibrary) {
  expect_all_as_pillow(debian_python, "webp", 21);
}

TEST(ImageGif, FirstFrameEqualsPillow) {
  expect_all_as_pillow(MILLRACE_PYTHON, "gif", 11);
}

TEST(OtherImages, EqualPillow) {
  expect_all_as_pillow(MILLRACE_PYTHON, "other", 30);
}

// libav would give noise for these, and say nothing.
TEST(OtherImages, WhatWouldBeMisreadIsRefused) {
  TemporaryFolder folder;
  run_python(
      "import sys\n"
      "from PIL import Image\n"
      "f = sys.argv[1] + '/'\n"
      "image = Image.new('RGB', (32, 32), (9, 99, 199))\n"
      "image.save(f + 'jpeg.tiff', compression='jpeg')\n"
      "image.convert('LA').save(f + 'grey_alpha.tga')\n"
      "image.convert('L').save(f + 'low_bits.tiff', tiffinfo={266: 2})\n"
      "image.convert('L').save(f + 'jpeg_grey.tiff', compression='jpeg')\n",
      folder.path().string());
  make_images(MILLRACE_PYTHON, "other", folder.path());
  const std::pair<const char*, const char*> files[] = {{"jpeg.tiff", "JPEG compression"},
                                                       {"jpeg_grey.tiff", "JPEG compression"},
                                                       {"grey_alpha.tga", "grey with alpha"},
                                                       {"low_bits.tiff", "low bits first"},
                                                       {"tiled.tiff", "made of tiles"}};
  for (const auto& [name, reason] : files) {
    Array pixels;
    Status status = decode_whole(read_bytes(folder / name), {.tolerant = true}, pixels);
    ASSERT_FALSE(status.ok()) << name;
    EXPECT_NE(status.error().reason().find(reason), std::string::npos) << status.error().what();
  }
}

TEST(Image, CompositesAlphaOnAColourAsPillowsPaste) {
  TemporaryFolder folder;
  run_python(
      "import sys, numpy as np\n"
      "from PIL import Image\n"
      "f = sys.argv[1]\n"
      "im = Image.fromarray(np.random.default_rng(1).integers(0, 256, (64, 64, "
      "4)).astype('uint8'))\n"
      "im.save(f + '/a.png')\n"
      "on = Image.new('RGB', im.size, (10, 200, 77))\n"
      "on.paste(im, mask=im.getchannel('A'))\n"
      "open(f + '/a.rgb', 'wb').write(on.tobytes())\n",
      folder.path().string());
  Array pixels;
  Status status =
      decode_whole(read_bytes(folder / "a.png"),
                   {.alpha = AlphaRule::composite, .background = {10, 200, 77}}, pixels);
  ASSERT_TRUE(status.ok()) << status.error().what();
  EXPECT_EQ(largest_difference(pixels_of(pixels), read_bytes(folder / "a.rgb")), 0);
}

TEST(Image, LeavesTheOrientationAloneWhenAsked) {
  TemporaryFolder folder;
  run_python(
      "import sys, numpy as np\n"
      "from PIL import Image\n"
      "f = sys.argv[1]\n"
      "im = Image.fromarray(np.random.default_rng(1).integers(0, 256, (5, 9, 3)).astype('uint8'))\n"
      "exif = Image.Exif(); exif[0x0112] = 6\n"
      "im.save(f + '/a.png', exif=exif)\n"
      "open(f + '/a.rgb', 'wb').write(im.tobytes())\n",
      folder.path().string());
  Array pixels;
  Status status = decode_whole(read_bytes(folder / "a.png"), {.orient = false}, pixels);
  ASSERT_TRUE(status.ok()) << status.error().what();
  EXPECT_EQ(largest_difference(pixels_of(pixels), read_bytes(folder / "a.rgb")), 0);
}

TEST(Image, RefusesADestinationOfAnotherShape) {
  TemporaryFolder folder;
  make_images(MILLRACE_PYTHON, "gif", folder.path());
  const std::vector<std::byte> bytes = read_bytes(folder / "grey.gif");
  for (const Array& wrong :
       {Array::empty(DType::uint8, {48, 64}), Array::empty(DType::uint8, {64, 48, 3}),
        Array::empty(DType::float32, {48, 64, 3})}) {
    Status status = decode_image(bytes, {}, wrong);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().kind(), ErrorKind::usage);
  }
}

}  // namespace
}  // namespace millrace
