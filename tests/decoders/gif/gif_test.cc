#include "tests/decoders/media_reference.h"

#include <millrace/decoders/gif/gif.h>
#include <millrace/decoders/gif/gif_write.h>

#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

namespace millrace {
namespace {

struct MadeGif {
  std::string name;
  int width = 0, height = 0;
  std::int64_t frames = 0;
  std::vector<int> delays;
};

// Made once: the reference is slow.
class Gif : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    std::istringstream lines(
        run_script("tests/decoders/gif/make_gifs.py", folder_->path().string()));
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      MadeGif gif;
      std::string delays, delay;
      words >> gif.name >> gif.width >> gif.height >> gif.frames >> delays;
      for (std::istringstream list(delays); std::getline(list, delay, ',');) {
        gif.delays.push_back(std::stoi(delay));
      }
      gifs_.push_back(gif);
    }
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
    gifs_.clear();
  }
  static std::filesystem::path path(const MadeGif& gif) { return *folder_ / (gif.name + ".gif"); }

  static inline TemporaryFolder* folder_ = nullptr;
  static inline std::vector<MadeGif> gifs_;
};

TEST_F(Gif, EveryFrameEqualsPillows) {
  ASSERT_GE(gifs_.size(), 50U);
  GifReader reader;
  for (const MadeGif& gif : gifs_) {
    SCOPED_TRACE(gif.name);
    Status status = reader.open(path(gif));
    ASSERT_TRUE(status.ok()) << status.error().what();
    EXPECT_EQ(reader.info().width, gif.width);
    EXPECT_EQ(reader.info().height, gif.height);
    EXPECT_EQ(reader.info().delays_ms, gif.delays);
    ClipOptions options{.frames = FrameSelection::first(gif.frames),
                        .short_clip = ShortClip::error};
    std::vector<std::uint8_t> clip(reader.clip_bytes(options));
    ClipResult result;
    status = reader.decode(options, clip, result);
    ASSERT_TRUE(status.ok()) << status.error().what();
    EXPECT_EQ(result.valid, gif.frames);
    std::vector<std::byte> expected = read_bytes(*folder_ / (gif.name + ".raw"));
    ASSERT_EQ(expected.size(), clip.size());
    std::size_t wrong = 0, first = 0;
    for (std::size_t i = clip.size(); i-- > 0;) {
      if (std::to_integer<std::uint8_t>(expected[i]) != clip[i]) ++wrong, first = i;
    }
    const std::size_t frame = clip.size() / static_cast<std::size_t>(gif.frames);
    EXPECT_EQ(wrong, 0U) << "first in frame " << first / frame << ", pixel " << first % frame / 3;
  }
}

TEST_F(Gif, ResizedFramesEqualPillowsCropAndResize) {
  GifReader reader;
  const auto path = *folder_ / "pillow_disposal1.gif";
  ASSERT_TRUE(reader.open(path).ok());
  for (auto [height, width] : {std::pair{32, 32}, {17, 40}, {100, 90}, {48, 20}, {1, 1}}) {
    for (int channels : {3, 1}) {
      ClipOptions options{.frames = FrameSelection::first(12),
                          .height = height,
                          .width = width,
                          .channels = channels};
      std::vector<std::uint8_t> clip(reader.clip_bytes(options));
      ClipResult result;
      ASSERT_TRUE(reader.decode(options, clip, result).ok());
      const std::string expected =
          run_python(R"(
import sys
from PIL import Image, ImageSequence
path, h, w, mode = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
for f in ImageSequence.Iterator(Image.open(path)):
    f = f.convert('RGB'); W, H = f.size; cw, ch = W, H
    if W * h > H * w: cw = (2 * H * w + h) // (2 * h)
    elif W * h < H * w: ch = (2 * W * h + w) // (2 * w)
    x, y = (W - cw) // 2, (H - ch) // 2
    f = f.crop((x, y, x + cw, y + ch)).resize((w, h), Image.BILINEAR).convert(mode)
    sys.stdout.buffer.write(f.tobytes())
)",
                     path.string() + " " + std::to_string(height) + " " + std::to_string(width) +
                         (channels == 3 ? " RGB" : " L"));
      EXPECT_TRUE(expected == std::string(clip.begin(), clip.end()))
          << height << " x " << width << " x " << channels;
    }
  }
}

TEST_F(Gif, SelectionsLayoutsAndShortClipsAreThoseOfVideo) {
  GifReader reader;
  ASSERT_TRUE(reader.open(*folder_ / "pillow_disposal2.gif").ok());
  constexpr std::size_t frame = std::size_t{64} * 48 * 3;
  auto decode = [&](const ClipOptions& options, Random* random = nullptr) {
    std::vector<std::uint8_t> clip(reader.clip_bytes(options));
    ClipResult result;
    Status status = reader.decode(options, clip, result, random);
    EXPECT_TRUE(status.ok()) << status.error().what();
    return std::pair(clip, result);
  };
  const auto all = decode({.frames = FrameSelection::first(12)}).first;
  auto expect = [&](const std::vector<std::uint8_t>& clip,
                    const std::vector<std::size_t>& numbers) {
    ASSERT_EQ(clip.size(), numbers.size() * frame);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const auto wanted = all.begin() + static_cast<std::ptrdiff_t>(numbers[i] * frame);
      EXPECT_TRUE(
          std::equal(wanted, wanted + frame, clip.begin() + static_cast<std::ptrdiff_t>(i * frame)))
          << "slot " << i;
    }
  };
  expect(decode({.frames = FrameSelection::strided(4, 3)}).first, {0, 3, 6, 9});
  expect(decode({.frames = FrameSelection::uniform(3)}).first, {0, 6, 11});
  // Delays are 40, 50, 60 ... ms.
  expect(decode({.frames = FrameSelection::at_times({0.0, 0.0399, 0.04, 0.15, 0.089})}).first,
         {0, 0, 1, 3, 1});
  Random draw(1, 2, 3, "w"), again(1, 2, 3, "w");
  const auto start = static_cast<std::size_t>(draw.below(9));
  expect(decode({.frames = FrameSelection::random_window(4)}, &again).first,
         {start, start + 1, start + 2, start + 3});
  auto [repeated, result] = decode({.frames = FrameSelection::strided(5, 4)});
  EXPECT_EQ(result.valid, 3);
  expect(repeated, {0, 4, 8, 8, 8});
  expect(decode({.frames = FrameSelection::strided(5, 4), .short_clip = ShortClip::loop}).first,
         {0, 4, 8, 0, 4});
  auto black =
      decode({.frames = FrameSelection::strided(5, 4), .short_clip = ShortClip::black}).first;
  EXPECT_TRUE(std::all_of(black.begin() + static_cast<std::ptrdiff_t>(3 * frame), black.end(),
                          [](std::uint8_t value) { return value == 0; }));
  ClipOptions strict{.frames = FrameSelection::first(13), .short_clip = ShortClip::error};
  std::vector<std::uint8_t> clip(reader.clip_bytes(strict));
  Status status = reader.decode(strict, clip, result);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(std::string(status.error().what()).find("12 of the 13 frames"), std::string::npos);
  const auto planar =
      decode({.frames = FrameSelection::first(12), .layout = ClipLayout::cthw}).first;
  for (std::size_t i = 0; i < all.size() / 3; ++i) {
    for (std::size_t c = 0; c < 3; ++c) ASSERT_EQ(planar[c * all.size() / 3 + i], all[3 * i + c]);
  }
}

// Frames of nature are not to be had here; smooth gradients with noise on top are as hard.
TEST(GifWrite, PillowReadsCountDelaysAndColoursBack) {
  TemporaryFolder folder;
  run_ffmpeg(
      "-f lavfi -i gradients=size=160x120:speed=0.1:nb_colors=6:seed=4:duration=1:rate=20 "
      "-vf noise=alls=8:allf=t -pix_fmt rgb24 -f rawvideo '" +
      (folder / "frames.raw").string() + "'");
  std::vector<std::byte> raw = read_bytes(folder / "frames.raw");
  std::span pixels(reinterpret_cast<const std::uint8_t*>(raw.data()), raw.size());
  const GifFrames shape{.frames = 20, .height = 120, .width = 160};
  ASSERT_EQ(pixels.size(), 20U * 160 * 120 * 3);
  for (double fps : {10.0, 12.5, 24.0, 30.0}) {
    ASSERT_TRUE(
        write_gif(folder / "a.gif", pixels, shape, {.frames_per_second = fps, .loops = 3}).ok());
    std::istringstream words(run_python(R"(
import sys, numpy as np
from PIL import Image, ImageSequence
want = np.fromfile(sys.argv[1] + '/frames.raw', np.uint8).reshape(20, 120, 160, 3)
im = Image.open(sys.argv[1] + '/a.gif')
loop = im.info['loop']
got, delays = [], []
for f in ImageSequence.Iterator(im):
    delays.append(f.info['duration']); got.append(np.asarray(f.convert('RGB')))
print(len(got), loop, sum(delays), max(delays) - min(delays), np.abs(np.stack(got).astype(int) - want).mean())
)",
                                        folder.path().string()));
    double count = 0, loop = 0, total = 0, spread = 0, error = 0;
    words >> count >> loop >> total >> spread >> error;
    EXPECT_EQ(count, 20);
    EXPECT_EQ(loop, 2);  // two more times
    EXPECT_NEAR(total, 20'000 / fps, 5);
    EXPECT_LE(spread, 10);
    EXPECT_LT(error, 6);
    EXPECT_GT(error, 0);
  }
}

TEST(GifWrite, OurReaderGivesBackFewColoursExactly) {
  TemporaryFolder folder;
  for (int colours : {1, 2, 3, 5, 17, 200, 256}) {
    std::vector<std::uint8_t> pixels;
    for (int i = 0; i < 3 * 40 * 30; ++i) {
      const int colour = i * 7919 % colours;
      pixels.push_back(static_cast<std::uint8_t>(colour % 64 * 4));
      pixels.push_back(static_cast<std::uint8_t>(colour / 64 * 64));
      pixels.push_back(static_cast<std::uint8_t>(colour % 7 * 30));
    }
    ASSERT_TRUE(write_gif(folder / "a.gif", pixels, {.frames = 3, .height = 30, .width = 40}).ok());
    GifReader reader;
    ASSERT_TRUE(reader.open(folder / "a.gif").ok());
    EXPECT_EQ(reader.info().loops, 0);
    ClipOptions options{.frames = FrameSelection::first(3), .short_clip = ShortClip::error};
    std::vector<std::uint8_t> again(reader.clip_bytes(options));
    ClipResult result;
    ASSERT_TRUE(reader.decode(options, again, result).ok());
    EXPECT_TRUE(again == pixels) << colours << " colours";
  }
}

}  // namespace
}  // namespace millrace
