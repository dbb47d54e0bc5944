// Colours, sizes, rotation, layouts and short clips of video.
#include "tests/decoders/media_reference.h"

#include <millrace/decoders/video/video.h>

#include <cmath>

#include <gtest/gtest.h>

namespace millrace {
namespace {

std::vector<std::uint8_t> decode(const std::filesystem::path& path, const ClipOptions& options,
                                 ClipResult* result = nullptr) {
  VideoReader reader;
  Status status = reader.open(path);
  EXPECT_TRUE(status.ok()) << status.error().what();
  if (!status.ok()) return {};
  std::vector<std::uint8_t> clip(reader.clip_bytes(options));
  ClipResult own;
  status = reader.decode(options, clip, result != nullptr ? *result : own);
  EXPECT_TRUE(status.ok()) << status.error().what();
  return clip;
}

// ffmpeg's planes of green, blue and red to interleaved RGB.
std::vector<std::uint8_t> interleave(const std::string& planes, std::size_t pixels) {
  std::vector<std::uint8_t> result(planes.size());
  for (std::size_t i = 0; i < planes.size() / 3; ++i) {
    const std::size_t frame = i / pixels * 3 * pixels, at = i % pixels;
    result[3 * i] = static_cast<std::uint8_t>(planes[frame + 2 * pixels + at]);
    result[3 * i + 1] = static_cast<std::uint8_t>(planes[frame + at]);
    result[3 * i + 2] = static_cast<std::uint8_t>(planes[frame + pixels + at]);
  }
  return result;
}

int worst_difference(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b) {
  EXPECT_EQ(a.size(), b.size());
  int worst = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    worst = std::max(worst, std::abs(a[i] - b[i]));
  }
  return worst;
}

const std::string flags = "flags=bilinear+accurate_rnd+full_chroma_int+full_chroma_inp";

TEST(VideoPixels, EqualFfmpegsAfterColourConversionAndResizing) {
  TemporaryFolder folder;
  for (const char* format : {"yuv420p", "yuv422p", "yuv444p", "yuv420p10le", "yuvj420p"}) {
    SCOPED_TRACE(format);
    const auto path = folder / (std::string(format) + ".mkv");
    run_ffmpeg("-f lavfi -i testsrc2=size=178x122:rate=10:duration=1 -c:v ffv1 -pix_fmt " +
               std::string(format) + " '" + path.string() + "'");
    struct Case {
      int height, width;
      Fit fit;
      std::string filter;
    };
    for (const Case& c : {Case{0, 0, Fit::stretch, "format=rgb24"},
                          Case{122, 122, Fit::centre_crop, "crop=122:122:28:0,format=rgb24"},
                          Case{64, 96, Fit::stretch, "scale=96:64:" + flags},
                          Case{60, 60, Fit::centre_crop, "crop=122:122:28:0,scale=60:60:" + flags},
                          Case{200, 300, Fit::stretch, "scale=300:200:" + flags}}) {
      ClipOptions options{
          .frames = FrameSelection::first(10), .height = c.height, .width = c.width, .fit = c.fit};
      const auto actual = decode(path, options);
      const std::size_t pixels =
          c.height > 0 ? static_cast<std::size_t>(c.height * c.width) : std::size_t{178} * 122;
      const auto expected = interleave(
          run_ffmpeg("-i '" + path.string() + "' -vf '" + c.filter + ",format=gbrp' -f rawvideo -"),
          pixels);
      EXPECT_LE(worst_difference(actual, expected), 1) << c.filter;
    }
    ClipOptions grey{.frames = FrameSelection::first(10), .channels = 1};
    const std::string expected = run_ffmpeg("-i '" + path.string() + "' -vf 'scale=" + flags +
                                            ",format=gray' -f rawvideo -");
    const auto actual = decode(path, grey);
    EXPECT_LE(worst_difference(actual, {reinterpret_cast<const std::uint8_t*>(expected.data()),
                                        expected.size()}),
              1);
  }
}

// Against the standards' own formulas, not ffmpeg's.
TEST(VideoPixels, MatrixAndRangeAreTheFilesOwn) {
  TemporaryFolder folder;
  struct Case {
    const char *matrix, *range;
    double kr, kb;
    bool full;
  };
  for (const Case& c :
       {Case{"bt709", "tv", 0.2126, 0.0722, false}, Case{"bt709", "pc", 0.2126, 0.0722, true},
        Case{"smpte170m", "tv", 0.299, 0.114, false}, Case{"smpte170m", "pc", 0.299, 0.114, true},
        Case{"bt2020nc", "tv", 0.2627, 0.0593, false}}) {
    SCOPED_TRACE(std::string(c.matrix) + " " + c.range);
    for (int luma : {80, 120, 180}) {
      const int u = 100, v = 150;
      const auto path = folder / "flat.mp4";
      run_ffmpeg(
          "-f lavfi -i \"color=black:size=32x32:rate=5:duration=1,format=yuv420p,"
          "geq=lum=" +
          std::to_string(luma) + ":cb=" + std::to_string(u) + ":cr=" + std::to_string(v) +
          "\" -c:v libx264 -qp 0 -pix_fmt yuv420p -colorspace " + c.matrix + " -color_range " +
          c.range + " '" + path.string() + "'");
      const auto clip = decode(path, {.frames = FrameSelection::first(2)});
      ASSERT_EQ(clip.size(), 2U * 32 * 32 * 3);
      const auto resized =
          decode(path, {.frames = FrameSelection::first(2), .height = 24, .width = 24});
      const double y = c.full ? luma : (luma - 16) * 255.0 / 219;
      const double scale = c.full ? 1 : 255.0 / 224;
      const double pb = (u - 128) * scale, pr = (v - 128) * scale;
      const double red = y + 2 * (1 - c.kr) * pr, blue = y + 2 * (1 - c.kb) * pb;
      const double green = (y - c.kr * red - c.kb * blue) / (1 - c.kr - c.kb);
      const double colour[] = {red, green, blue};
      for (std::size_t channel = 0; channel < 3; ++channel) {
        EXPECT_NEAR(resized[channel], colour[channel], 1.01);
        // Frames that keep their size have ffmpeg's own rounding, which is coarser.
        EXPECT_NEAR(clip[channel], colour[channel], 2.5);
      }
    }
  }
}

TEST(VideoPixels, RotationAndFlipsAreApplied) {
  TemporaryFolder folder;
  const auto plain = folder / "plain.mov";
  run_ffmpeg(
      "-f lavfi -i testsrc2=size=64x48:rate=5:duration=1 -c:v libx264 -qp 0 "
      "-pix_fmt yuv444p '" +
      plain.string() + "'");
  for (int degrees : {0, 90, 180, 270}) {
    const auto path = folder / ("r" + std::to_string(degrees) + ".mov");
    run_ffmpeg("-i '" + plain.string() + "' -c copy -metadata:s:v:0 rotate=" +
               std::to_string(degrees) + " '" + path.string() + "'");
    VideoInfo info;
    ASSERT_TRUE(probe_video(path, info).ok());
    // The option counts the other way round.
    EXPECT_EQ(info.rotation_degrees, (360 - degrees) % 360);
    EXPECT_EQ(info.width, degrees % 180 == 0 ? 64 : 48);
    EXPECT_EQ(info.height, degrees % 180 == 0 ? 48 : 64);
    const auto expected = interleave(
        run_ffmpeg("-i '" + path.string() + "' -vf format=rgb24,format=gbrp -f rawvideo -"),
        std::size_t{64} * 48);
    for (ClipLayout layout : {ClipLayout::thwc, ClipLayout::cthw}) {
      auto actual = decode(path, {.frames = FrameSelection::first(5), .layout = layout});
      if (layout == ClipLayout::cthw) {
        std::vector<std::uint8_t> turned(actual.size());
        for (std::size_t i = 0; i < actual.size() / 3; ++i) {
          for (std::size_t c = 0; c < 3; ++c) turned[3 * i + c] = actual[c * actual.size() / 3 + i];
        }
        actual = turned;
      }
      EXPECT_LE(worst_difference(actual, expected), 1) << degrees;
    }
  }
}

TEST(VideoPixels, ShortClipsAreFilledAndTheValidCountIsTold) {
  TemporaryFolder folder;
  const auto path = folder / "short.mp4";
  run_ffmpeg("-f lavfi -i testsrc2=size=32x32:rate=10:duration=0.5 -c:v libx264 '" + path.string() +
             "'");
  ClipOptions options{.frames = FrameSelection::first(8), .height = 16, .width = 16};
  constexpr std::size_t frame = 16 * 16 * 3;
  auto slot = [&](const std::vector<std::uint8_t>& clip, std::size_t i) {
    return std::vector<std::uint8_t>(clip.begin() + static_cast<std::ptrdiff_t>(i * frame),
                                     clip.begin() + static_cast<std::ptrdiff_t>((i + 1) * frame));
  };
  ClipResult result;
  auto clip = decode(path, options, &result);
  EXPECT_EQ(result.valid, 5);
  EXPECT_EQ(slot(clip, 7), slot(clip, 4));
  EXPECT_NE(slot(clip, 3), slot(clip, 4));
  options.short_clip = ShortClip::loop;
  clip = decode(path, options, &result);
  EXPECT_EQ(slot(clip, 5), slot(clip, 0));
  EXPECT_EQ(slot(clip, 7), slot(clip, 2));
  options.short_clip = ShortClip::black;
  clip = decode(path, options, &result);
  EXPECT_EQ(slot(clip, 6), std::vector<std::uint8_t>(frame, 0));
  options.frames = FrameSelection::at_times({0.1, 0.45, 0.6, 2.0});
  clip = decode(path, options, &result);
  EXPECT_EQ(result.valid, 2);
  options.short_clip = ShortClip::error;
  VideoReader reader;
  ASSERT_TRUE(reader.open(path).ok());
  Status status = reader.decode(options, clip, result);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(std::string(status.error().what()).find("has 2 of the 4 frames"), std::string::npos);
}

TEST(VideoPixels, SeveralThreadsGiveTheSame) {
  TemporaryFolder folder;
  const auto path = folder / "a.mp4";
  run_ffmpeg("-f lavfi -i testsrc2=size=160x120:rate=25:duration=2 -c:v libx264 -g 12 '" +
             path.string() + "'");
  ClipOptions options{.frames = FrameSelection::strided(9, 4)};
  const auto expected = decode(path, options);
  VideoReader reader;
  ASSERT_TRUE(reader.open(path, {.threads = 3}).ok());
  std::vector<std::uint8_t> clip(reader.clip_bytes(options));
  for (int i = 0; i < 3; ++i) {
    ClipResult result;
    ASSERT_TRUE(reader.decode(options, clip, result).ok());
    EXPECT_TRUE(clip == expected);
  }
}

}  // namespace
}  // namespace millrace
