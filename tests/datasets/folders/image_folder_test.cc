#include "tests/decoders/image/image_files.h"
#include "tests/reference.h"

#include <millrace/datasets/folders/image_folder.h>
#include <millrace/pipeline/data/subset.h>
#include <millrace/pipeline/loader/loader.h>

#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

namespace millrace {
namespace {

// Pictures of several formats and sizes, and what Pillow makes of them.
class ImageFolderTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    run_python(R"(
import sys, os, numpy as np
from PIL import Image
root = sys.argv[1]
os.makedirs(root + '/in/sub')
rng = np.random.default_rng(7)
for i, name in enumerate(['a.jpg', 'b.PNG', 'sub/c.webp', 'sub/d.BMP', 'e.gif', 'f.tiff', 'g.JPEG',
                          'h.png']):
    h, w = 40 + 13 * i, 90 - 7 * i
    pixels = rng.integers(0, 256, (h // 4 + 1, w // 4 + 1, 3), dtype=np.uint8)
    image = Image.fromarray(pixels).resize((w, h), Image.BICUBIC)
    if name == 'h.png':
        image.putalpha(Image.fromarray(rng.integers(0, 256, (h, w), dtype=np.uint8)))
    image.save(f'{root}/in/{name}', **({'lossless': True} if name.endswith('webp') else {}))
open(root + '/in/notes.txt', 'w').write('no picture')
)",
               folder_->path().string());
  }
  static void TearDownTestSuite() { delete folder_; }

  static std::filesystem::path pictures() { return *folder_ / "in"; }
  // The transform by Pillow, for every picture in sorted order; the arguments are Python.
  static std::vector<std::uint8_t> pillow(const std::string& size, const std::string& convert) {
    run_python(R"(
import sys, os
from PIL import Image
root, size, convert = sys.argv[1], eval(sys.argv[2]), sys.argv[3]
names = sorted(os.path.relpath(os.path.join(d, f), root + '/in')
               for d, _, fs in os.walk(root + '/in') for f in fs if not f.endswith('.txt'))
out = open(root + '/expected', 'wb')
for name in names:
    image = Image.open(root + '/in/' + name).convert(convert)
    w, h = image.size
    th, tw = size
    side = max(tw, -(-th * w // h)) if w <= h else max(th, -(-tw * h // w))
    rw, rh = (side, int(side * h / w)) if w <= h else (int(side * w / h), side)
    image = image.resize((rw, rh), Image.BILINEAR)
    left, top = round((rw - tw) / 2), round((rh - th) / 2)
    out.write(image.crop((left, top, left + tw, top + th)).tobytes())
)",
               folder_->path().string() + " " + size + " " + convert, debian_python);
    std::ifstream in(*folder_ / "expected", std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static std::vector<std::uint8_t> load_all(const Dataset& images, std::int64_t epoch = 0) {
    std::vector<std::uint8_t> all;
    Sample sample(images.schema());
    for (std::int64_t i = 0; i < images.size(); ++i) {
      sample.restart();
      Status status = images.load(i, {.epoch = epoch, .index = i}, sample);
      EXPECT_TRUE(status.ok()) << status.error().what();
      auto pixels = sample["image"].as<std::uint8_t>();
      all.insert(all.end(), pixels.begin(), pixels.end());
    }
    return all;
  }

  static TemporaryFolder* folder_;
};
TemporaryFolder* ImageFolderTest::folder_ = nullptr;

TEST_F(ImageFolderTest, HasPillowsPixelsInSortedOrder) {
  auto compare = [&](const ImageFolderOptions& options, const char* size, const char* mode) {
    ImageFolder images(pictures(), options);
    auto ours = load_all(images), theirs = pillow(size, mode);
    ASSERT_EQ(ours.size(), theirs.size());
    std::size_t bytes = ours.size() / static_cast<std::size_t>(images.size());
    for (std::size_t i = 0; i < ours.size(); i += bytes) {
      EXPECT_TRUE(std::equal(&ours[i], &ours[i] + bytes, &theirs[i]))
          << images.describe(static_cast<std::int64_t>(i / bytes)) << " at " << size;
    }
  };
  compare({.size = 32}, "32,32", "RGB");
  compare({.size = {24, 48}}, "24,48", "RGB");
  compare({.size = 16, .channels = 1}, "16,16", "L");
}

TEST_F(ImageFolderTest, KeepsPicturesAsLargeAsTheyAreIfNoSizeIsGiven) {
  ImageFolder images(pictures(), {.size = 0});
  EXPECT_EQ(to_string(images.schema()), "image uint8 [-1, -1, 3]");
  Sample sample(images.schema());
  ASSERT_TRUE(images.load(0, {}, sample).ok());
  EXPECT_EQ(sample["image"].shape(), (Shape{40, 90, 3}));
}

TEST_F(ImageFolderTest, MirrorsByChanceThatDependsOnSeedEpochAndIndexAlone) {
  auto plain = load_all(ImageFolder(pictures(), {.size = 32}));
  ImageFolder flipped(pictures(), {.size = 32, .flip = 0.5});
  std::size_t mirrored = 0, image = 32 * 32 * 3;
  for (std::int64_t epoch = 0; epoch < 8; ++epoch) {
    auto now = load_all(flipped, epoch);
    ASSERT_EQ(now, load_all(flipped, epoch));
    for (std::size_t i = 0; i < now.size(); i += image) {
      if (std::equal(now.begin() + i, now.begin() + i + image, plain.begin() + i)) continue;
      ++mirrored;
      for (std::size_t y = 0; y < 32; ++y) {
        for (std::size_t x = 0; x < 32; ++x) {
          ASSERT_EQ(now[i + (y * 32 + x) * 3], plain[i + (y * 32 + 31 - x) * 3]);
        }
      }
    }
  }
  EXPECT_GT(mirrored, 16U);
  EXPECT_LT(mirrored, 48U);
}

TEST_F(ImageFolderTest, GivesPlanesIfAsked) {
  auto hwc = load_all(ImageFolder(pictures(), {.size = 8}));
  auto chw = load_all(ImageFolder(pictures(), {.size = 8, .layout = Layout::chw}));
  for (std::size_t i = 0; i < 64; ++i) {
    for (std::size_t c = 0; c < 3; ++c) ASSERT_EQ(hwc[i * 3 + c], chw[c * 64 + i]);
  }
}

TEST_F(ImageFolderTest, FeedsALoader) {
  Loader loader(ImageFolder(pictures(), {.size = 32}),
                {.batch_size = 3, .threads = 2, .to_float = {{"image", ToFloat::unit()}}});
  std::int64_t rows = 0;
  for (const Batch& batch : loader) {
    EXPECT_EQ(batch["image"].shape(), (Shape{batch.size(), 3, 32, 32}));
    rows += batch.size();
  }
  EXPECT_EQ(rows, 8);
}

TEST_F(ImageFolderTest, SplitsByNameAsTorchDoes) {
  if (MILLRACE_PYTHON_TORCH == 0) GTEST_SKIP() << "Python cannot import torch here";
  auto [train, valid] = random_split(ImageFolder(pictures()), {.valid_fraction = 0.3, .seed = 42});
  std::string ours;
  for (std::int64_t i = 0; i < train.size(); ++i) ours += train.describe(i) + "\n";
  for (std::int64_t i = 0; i < valid.size(); ++i) ours += valid.describe(i) + "\n";
  EXPECT_EQ(ours, run_python(R"(
import sys, os, torch
from torch.utils.data import random_split
names = sorted(os.path.join(d, f) for d, _, fs in os.walk(sys.argv[1])
               for f in fs if not f.endswith('.txt'))
train = int((1 - 0.3) * len(names))
parts = random_split(names, [train, len(names) - train],
                     generator=torch.Generator().manual_seed(42))
for part in parts:
    for name in part: print(name)
)",
                             pictures().string()));
}

TEST_F(ImageFolderTest, RefusesOptionsThatCannotBe) {
  for (const ImageFolderOptions& options :
       {ImageFolderOptions{.size = {0, 8}}, ImageFolderOptions{.size = -1},
        ImageFolderOptions{.size = 32, .resize = 16}, ImageFolderOptions{.channels = 2},
        ImageFolderOptions{.flip = 1.5}}) {
    EXPECT_THROW(ImageFolder(pictures(), options), Error);
  }
}

}  // namespace
}  // namespace millrace
