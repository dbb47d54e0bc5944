// Every selection of frames, over the codecs and containers that people have, against the ffmpeg
// command: the same frames, bit for bit before colour conversion.
#include "tests/decoders/media_reference.h"

#include <millrace/decoders/video/video.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include <gtest/gtest.h>

namespace millrace {
namespace {

struct ClipCase {
  const char* name;
  const char* file;
  const char* arguments;  // after the input
};

void PrintTo(const ClipCase& clip, std::ostream* out) {
  *out << clip.name;
}

constexpr const char* source = "-f lavfi -i testsrc2=size=160x120:rate=25:duration=2.4 ";

const ClipCase cases[] = {
    {"H264WithBFrames", "a.mp4", "-c:v libx264 -bf 3 -g 20 -pix_fmt yuv420p"},
    {"H264OpenGop", "a.mp4", "-c:v libx264 -x264-params open-gop=1:keyint=15:bframes=4"},
    {"H264IntraRefresh", "a.mkv", "-c:v libx264 -x264-params intra-refresh=1:keyint=15"},
    {"H264LongGop", "a.mp4", "-c:v libx264 -bf 2 -g 1000 -pix_fmt yuv420p"},
    {"H264Fragmented", "a.mp4", "-c:v libx264 -g 12 -movflags frag_keyframe+empty_moov"},
    {"H264Matroska", "a.mkv", "-c:v libx264 -bf 3 -g 20 -pix_fmt yuv420p"},
    {"H264TransportStream", "a.ts", "-c:v libx264 -bf 2 -g 20 -pix_fmt yuv420p"},
    {"H264Raw", "a.h264", "-c:v libx264 -bf 2 -g 20 -pix_fmt yuv420p"},
    {"H264Avi", "a.avi", "-c:v libx264 -bf 0 -g 20 -pix_fmt yuv420p"},
    {"H264TenBit", "a.mp4", "-c:v libx264 -pix_fmt yuv420p10le -g 16"},
    {"H264Yuv444", "a.mp4", "-c:v libx264 -pix_fmt yuv444p -g 16"},
    {"Hevc", "a.mp4", "-c:v libx265 -x265-params log-level=none:keyint=20:bframes=3"},
    {"HevcTenBit", "a.mkv", "-c:v libx265 -pix_fmt yuv420p10le -x265-params log-level=none"},
    {"Vp9", "a.webm", "-c:v libvpx-vp9 -deadline realtime -cpu-used 8 -g 20"},
    {"Vp8WithHiddenFrames", "a.webm",
     "-c:v libvpx -auto-alt-ref 1 -lag-in-frames 12 -g 30 -deadline good -cpu-used 4"},
    {"Av1", "a.mp4", "-c:v libaom-av1 -cpu-used 8 -usage realtime -g 20"},
    {"Mpeg4Avi", "a.avi", "-c:v mpeg4 -bf 2 -g 12 -q:v 5"},
    {"Mpeg2Program", "a.mpg", "-c:v mpeg2video -bf 2 -g 12 -q:v 5"},
    {"VariableRate", "a.mp4",
     "-vf select='not(mod(n\\,5))+gt(mod(n\\,30)\\,17)' -fps_mode vfr -c:v libx264 -bf 3 -g 15"},
    {"VariableRateMatroska", "a.mkv",
     "-vf select='not(mod(n\\,5))+gt(mod(n\\,30)\\,17)' -fps_mode vfr -c:v libx264 -bf 3 -g 15"},
    {"H264Mov", "a.mov", "-c:v libx264 -g 20 -pix_fmt yuv420p"},
    {"Ffv1", "a.mkv", "-c:v ffv1"},
    {"MotionJpeg", "a.mov", "-c:v mjpeg -q:v 4 -pix_fmt yuvj420p"},
};

class VideoFrames : public testing::TestWithParam<ClipCase> {
 protected:
  void SetUp() override {
    path_ = folder_ / GetParam().file;
    run_ffmpeg(source + std::string(GetParam().arguments) + " '" + path_.string() + "'");
    reference_ = reference_frames(path_);
    ASSERT_GT(reference_.size(), 20);
    Status status = reader_.open(path_);
    ASSERT_TRUE(status.ok()) << status.error().what();
  }

  ClipResult decode(const FrameSelection& selection, Random* random = nullptr) {
    ClipOptions options{.frames = selection, .height = 24, .width = 32, .checksums = true};
    clip_.assign(reader_.clip_bytes(options), 99);
    ClipResult result;
    Status status = reader_.decode(options, clip_, result, random);
    EXPECT_TRUE(status.ok()) << status.error().what();
    return result;
  }

  void expect_frames(const ClipResult& result, const std::vector<std::int64_t>& numbers) {
    ASSERT_EQ(result.valid, std::ssize(numbers));
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const auto n = static_cast<std::size_t>(numbers[i]);
      EXPECT_EQ(result.checksums[i], reference_.checksums[n]) << "slot " << i << ", frame " << n;
      EXPECT_NEAR(result.times_seconds[i], reference_.times[n], 1e-4) << "slot " << i;
    }
  }

  TemporaryFolder folder_;
  std::filesystem::path path_;
  ReferenceFrames reference_;
  VideoReader reader_;
  std::vector<std::uint8_t> clip_;
};

TEST_P(VideoFrames, EverySelectionGivesTheFramesThatFfmpegShows) {
  const std::int64_t n = reference_.size();
  std::vector<std::int64_t> numbers(17);
  for (std::int64_t i = 0; i < 17; ++i) numbers[static_cast<std::size_t>(i)] = i;
  expect_frames(decode(FrameSelection::first(17)), numbers);

  numbers.clear();
  for (std::int64_t i = 0; i < 6; ++i) numbers.push_back(3 * i);
  expect_frames(decode(FrameSelection::strided(6, 3)), numbers);

  numbers.clear();
  for (std::int64_t i = 0; i < 7; ++i) numbers.push_back((2 * i * (n - 1) + 6) / 12);
  expect_frames(decode(FrameSelection::uniform(7)), numbers);

  for (int seed = 0; seed < 4; ++seed) {
    Random draw(1, 0, seed, "window"), again(1, 0, seed, "window");
    const std::int64_t start = draw.below(n - 8);
    numbers = {start, start + 2, start + 4, start + 6, start + 8};
    expect_frames(decode(FrameSelection::random_window(5, 2), &again), numbers);
  }

  numbers.clear();
  std::vector<double> times = {0.0, 1.3, 0.41, 2.0, 0.41, 0.999};
  for (double seconds : times) numbers.push_back(reference_.at(seconds));
  expect_frames(decode(FrameSelection::at_times(times)), numbers);
}

TEST_P(VideoFrames, ATargetRateGivesWhatFfmpegsFpsFilterGives) {
  if (GetParam().name == std::string("H264Raw")) GTEST_SKIP() << "a raw stream has no times";
  // Rounding up makes the filter show the last frame that has started.
  ReferenceFrames filtered =
      reference_frames(path_, "-vf setpts=PTS-STARTPTS,fps=fps=8:round=up:start_time=0");
  ClipResult result = decode(FrameSelection::at_fps(12, 8.0));
  ASSERT_EQ(result.valid, 12);
  for (std::size_t i = 0; i < 12; ++i) {
    EXPECT_EQ(result.checksums[i], filtered.checksums[i]) << "slot " << i;
  }
}

TEST_P(VideoFrames, RandomAccessEqualsLinearDecoding) {
  Random random(7, 0, 0, "access");
  for (int i = 0; i < 40; ++i) {
    const auto n = static_cast<std::size_t>(random.below(reference_.size()));
    ClipResult result = decode(FrameSelection::at_times({reference_.times[n]}));
    ASSERT_EQ(result.valid, 1);
    EXPECT_EQ(result.checksums[0], reference_.checksums[n]) << "frame " << n;
  }
}

TEST_P(VideoFrames, BytesInMemoryGiveTheSameAsTheFile) {
  std::vector<std::byte> bytes = read_bytes(path_);
  ClipOptions options{.frames = FrameSelection::first(9), .height = 24, .width = 32};
  ClipResult result;
  std::vector<std::uint8_t> from_file(reader_.clip_bytes(options));
  Status status = reader_.decode(options, from_file, result);
  ASSERT_TRUE(status.ok()) << status.error().what();
  VideoReader memory;
  status = memory.open(bytes);
  ASSERT_TRUE(status.ok()) << status.error().what();
  std::vector<std::uint8_t> from_memory(memory.clip_bytes(options));
  status = memory.decode(options, from_memory, result);
  ASSERT_TRUE(status.ok()) << status.error().what();
  EXPECT_EQ(from_file, from_memory);
}

INSTANTIATE_TEST_SUITE_P(Codecs, VideoFrames, testing::ValuesIn(cases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Video, FiveHundredRandomFramesOfALongGroupEqualLinearDecoding) {
  TemporaryFolder folder;
  const auto path = folder / "long.mp4";
  run_ffmpeg(
      "-f lavfi -i testsrc2=size=64x48:rate=30:duration=40 -c:v libx264 -bf 3 -g 250 "
      "-preset veryfast '" +
      path.string() + "'");
  ReferenceFrames reference = reference_frames(path);
  ASSERT_EQ(reference.size(), 1200);
  VideoReader reader;
  ASSERT_TRUE(reader.open(path).ok());
  Random random(3, 0, 0, "frames");
  ClipOptions options{.frames = {}, .height = 8, .width = 8, .checksums = true};
  std::vector<std::uint8_t> clip(8 * 8 * 3);
  int wrong = 0;
  for (int i = 0; i < 500; ++i) {
    const auto n = static_cast<std::size_t>(random.below(1200));
    options.frames = FrameSelection::at_times({reference.times[n]});
    ClipResult result;
    ASSERT_TRUE(reader.decode(options, clip, result).ok());
    wrong += result.valid != 1 || result.checksums[0] != reference.checksums[n] ? 1 : 0;
  }
  EXPECT_EQ(wrong, 0);
}

TEST(Video, DecodesNoMoreThanNeeded) {
  TemporaryFolder folder;
  const auto path = folder / "a.mp4";
  run_ffmpeg("-f lavfi -i testsrc2=size=64x48:rate=25:duration=20 -c:v libx264 -bf 3 -g 25 '" +
             path.string() + "'");
  VideoReader reader;
  ASSERT_TRUE(reader.open(path).ok());
  ClipOptions options{.frames = FrameSelection::first(17), .height = 8, .width = 8};
  std::vector<std::uint8_t> clip(reader.clip_bytes(options));
  ClipResult result;
  ASSERT_TRUE(reader.decode(options, clip, result).ok());
  EXPECT_LE(result.decoded, 20);  // 17 and the references that they need
  options.frames = FrameSelection::at_times({15.0});
  clip.resize(reader.clip_bytes(options));
  ASSERT_TRUE(reader.decode(options, clip, result).ok());
  EXPECT_LE(result.decoded, 2);  // on a key frame
  options.frames = FrameSelection::uniform(5);
  clip.resize(reader.clip_bytes(options));
  ASSERT_TRUE(reader.decode(options, clip, result).ok());
  EXPECT_LE(result.decoded, 5 * 26);
}

}  // namespace
}  // namespace millrace
