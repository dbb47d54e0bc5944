// Two thousand truncations and bit flips of each format: any answer is good, but it must come soon
// and without a crash. Run it under the sanitizers too.
#include "tests/decoders/media_reference.h"

#include <millrace/decoders/audio/audio.h>
#include <millrace/decoders/gif/gif.h>
#include <millrace/decoders/gif/gif_write.h>
#include <millrace/decoders/video/video.h>
#include <millrace/pipeline/base/random.h>

#include <functional>

#include <gtest/gtest.h>

namespace millrace {
namespace {

constexpr DecodeLimits small{.frame_pixels = 256 * 256,
                             .frames_kept = 64,
                             .duration_seconds = 60,
                             .decoded_bytes = 8 << 20,
                             .deadline_seconds = 5};

using Decode = std::function<bool(std::span<const std::byte>)>;

// How many of the damaged copies were still decoded.
int damage(const std::vector<std::byte>& whole, const Decode& decode) {
  int decoded = 0;
  for (int i = 0; i < 2000; ++i) {
    Random random(11, 0, i, "damage");
    std::vector<std::byte> copy = whole;
    if (i % 2 == 0) {
      copy.resize(static_cast<std::size_t>(random.below(std::ssize(copy))));
    } else {
      for (std::int64_t k = 1 + random.below(8); k > 0; --k) {
        copy[static_cast<std::size_t>(random.below(std::ssize(copy)))] ^= std::byte{1}
                                                                          << random.below(8);
      }
    }
    decoded += decode(copy) ? 1 : 0;
  }
  return decoded;
}

struct DamageCase {
  const char* name;
  const char* file;
  const char* arguments;
  bool is_noticed = true;  // FFmpeg tells damage inside of frames
};

void PrintTo(const DamageCase& one, std::ostream* out) {
  *out << one.name;
}

const DamageCase videos[] = {
    {"H264Mp4", "a.mp4", "-c:v libx264 -bf 2 -g 5 -pix_fmt yuv420p"},
    {"HevcMp4", "a.mp4", "-c:v libx265 -x265-params log-level=none"},
    {"Vp9Webm", "a.webm", "-c:v libvpx-vp9 -deadline realtime -cpu-used 8", false},
    {"H264Mkv", "a.mkv", "-c:v libx264 -bf 2 -g 5 -pix_fmt yuv420p"},
    {"H264Mov", "a.mov", "-c:v libx264 -bf 2 -g 5 -pix_fmt yuv420p"},
    {"Mpeg4Avi", "a.avi", "-c:v mpeg4 -bf 2"},
    {"H264Ts", "a.ts", "-c:v libx264 -bf 2 -g 5", false},
};

const DamageCase sounds[] = {
    {"Wav", "a.wav", ""},
    {"Flac", "a.flac", ""},
    {"Mp3", "a.mp3", "-c:a libmp3lame"},
    {"Vorbis", "a.ogg", "-c:a libvorbis"},
    {"Opus", "a.opus", "-c:a libopus"},
    {"M4a", "a.m4a", "-c:a aac"},
};

class DamagedVideo : public testing::TestWithParam<DamageCase> {};
class DamagedSound : public testing::TestWithParam<DamageCase> {};

TEST_P(DamagedVideo, NeverCrashesOrHangs) {
  TemporaryFolder folder;
  const auto path = folder / GetParam().file;
  run_ffmpeg("-f lavfi -i testsrc2=size=64x64:rate=10:duration=1 " +
             std::string(GetParam().arguments) + " '" + path.string() + "'");
  VideoReader reader;
  int turn = 0;
  const int decoded = damage(read_bytes(path), [&](std::span<const std::byte> bytes) {
    if (!reader.open(bytes, {.limits = small}).ok()) return false;
    ClipOptions options{.frames = FrameSelection::first(4), .height = 16, .width = 16};
    if (turn % 3 == 1) options.frames = FrameSelection::at_times({0.7, 0.2});
    if (turn++ % 3 == 2) options.frames = FrameSelection::uniform(3);
    std::vector<std::uint8_t> clip(reader.clip_bytes(options));
    ClipResult result;
    return reader.decode(options, clip, result).ok();
  });
  EXPECT_GT(decoded, 0);
  EXPECT_LT(decoded, 2000);
}

TEST_P(DamagedSound, NeverCrashesOrHangs) {
  TemporaryFolder folder;
  const auto path = folder / GetParam().file;
  run_ffmpeg("-f lavfi -i sine=sample_rate=16000:duration=2.5 -ac 1 " +
             std::string(GetParam().arguments) + " '" + path.string() + "'");
  AudioReader reader;
  int turn = 0;
  const int decoded = damage(read_bytes(path), [&](std::span<const std::byte> bytes) {
    if (!reader.open(bytes, small).ok()) return false;
    AudioOptions options{
        .start = turn++ % 2 * 40'000, .samples = 1500, .sample_rate_hz = 24'000, .channels = 1};
    std::vector<float> sound(1500);
    AudioResult result;
    return reader.decode(options, sound, result).ok();
  });
  EXPECT_GT(decoded, 0);
  EXPECT_LT(decoded, 2000);
}

std::string outcome(std::span<const std::byte> bytes, const FrameSelection& frames, bool strict,
                    ClipResult& result) {
  VideoReader reader;
  Status status = reader.open(bytes);
  const ClipOptions options{.frames = frames, .height = 16, .width = 16, .strict = strict};
  std::vector<std::uint8_t> clip(reader.clip_bytes(options));
  if (status.ok()) status = reader.decode(options, clip, result);
  return status.ok() ? "ok" : status.error().what();
}

TEST_P(DamagedVideo, IsAnErrorOnlyWhenStrict) {
  TemporaryFolder folder;
  const auto path = folder / GetParam().file;
  run_ffmpeg("-f lavfi -i testsrc2=size=64x64:rate=10:duration=3 " +
             std::string(GetParam().arguments) + " -movflags +faststart '" + path.string() + "'");
  const std::vector<std::byte> whole = read_bytes(path);
  for (const FrameSelection& frames : {FrameSelection::first(30), FrameSelection::uniform(7),
                                       FrameSelection::at_times({2.1, 0.4})}) {
    ClipResult result;
    EXPECT_EQ(outcome(whole, frames, true, result), "ok");
    EXPECT_EQ(result.damaged, 0);
  }
  // Noise in the middle of the frames, where no header is.
  std::vector<std::byte> broken = whole;
  for (std::size_t i = whole.size() / 2; i < whole.size() / 2 + 600; ++i) {
    broken[i] = std::byte(i * 7919 >> 3);
  }
  ClipResult result;
  EXPECT_EQ(outcome(broken, FrameSelection::first(30), false, result), "ok");
  EXPECT_GT(result.valid, 5);
  const std::string said = outcome(broken, FrameSelection::first(30), true, result);
  EXPECT_EQ(said == "ok", result.damaged == 0) << said;
  if (!GetParam().is_noticed) return;
  EXPECT_GT(result.damaged, 0);
  EXPECT_NE(said.find("damaged packets"), std::string::npos) << said;
}

INSTANTIATE_TEST_SUITE_P(Formats, DamagedVideo, testing::ValuesIn(videos),
                         [](const auto& info) { return std::string(info.param.name); });
INSTANTIATE_TEST_SUITE_P(Formats, DamagedSound, testing::ValuesIn(sounds),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(DamagedGif, NeverCrashesOrHangs) {
  std::vector<std::uint8_t> pixels(std::size_t{6} * 24 * 32 * 3), file;
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(i * i / 97);
  ASSERT_TRUE(encode_gif(pixels, {.frames = 6, .height = 24, .width = 32}, {}, file).ok());
  auto bytes = std::as_bytes(std::span(file));
  GifReader reader;
  const int decoded = damage({bytes.begin(), bytes.end()}, [&](std::span<const std::byte> copy) {
    if (!reader.open(copy, small).ok()) return false;
    ClipOptions options{.frames = FrameSelection::uniform(4), .height = 16, .width = 16};
    std::vector<std::uint8_t> clip(reader.clip_bytes(options));
    ClipResult result;
    return reader.decode(options, clip, result).ok();
  });
  EXPECT_GT(decoded, 0);
  EXPECT_LT(decoded, 2000);
}

}  // namespace
}  // namespace millrace
