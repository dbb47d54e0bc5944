// Each limit at its value and one beyond; what is refused; and what the errors say.
#include "tests/decoders/media_reference.h"

#include <millrace/decoders/audio/audio.h>
#include <millrace/decoders/gif/gif.h>
#include <millrace/decoders/gif/gif_write.h>
#include <millrace/decoders/video/video.h>

#include <functional>
#include <iostream>

#include <gtest/gtest.h>
#include <sys/stat.h>

namespace millrace {
namespace {

Status decode_video(const std::filesystem::path& path, const ClipOptions& options,
                    const DecodeLimits& limits) {
  VideoReader reader;
  Status status = reader.open(path, {.limits = limits});
  if (!status.ok()) return status;
  std::vector<std::uint8_t> clip(reader.clip_bytes(options));
  ClipResult result;
  return reader.decode(options, clip, result);
}

Status decode_gif(const std::filesystem::path& path, const ClipOptions& options,
                  const DecodeLimits& limits) {
  GifReader reader;
  Status status = reader.open(path, limits);
  if (!status.ok()) return status;
  std::vector<std::uint8_t> clip(reader.clip_bytes(options));
  ClipResult result;
  return reader.decode(options, clip, result);
}

Status decode_audio(const std::filesystem::path& path, const DecodeLimits& limits) {
  AudioReader reader;
  Status status = reader.open(path, limits);
  if (!status.ok()) return status;
  std::vector<float> sound;
  AudioResult result;
  return reader.decode_all({}, sound, result);
}

std::string text(const Status& status) {
  return status.ok() ? "" : status.error().what();
}

class MediaLimits : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    run_ffmpeg(
        "-f lavfi -i testsrc2=size=64x48:rate=10:duration=2 -f lavfi -i sine=duration=2 "
        "-c:v libx264 -g 8 -c:a aac '" +
        (*folder_ / "a.mp4").string() + "'");
    std::vector<std::uint8_t> pixels(std::size_t{20} * 64 * 48 * 3);
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(i / 7);
    ASSERT_TRUE(
        write_gif(*folder_ / "a.gif", pixels, {.frames = 20, .height = 48, .width = 64}).ok());
    for (const char* name : {"a.wav", "a.flac"}) {
      run_ffmpeg("-f lavfi -i sine=sample_rate=44100:duration=2 -ac 2 '" +
                 (*folder_ / name).string() + "'");
    }
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }
  // The limit may be `allowed`, and not one less.
  template <typename T>
  void expect_limit(const std::function<Status(const DecodeLimits&)>& decode,
                    T DecodeLimits::*limit, T allowed, T step, const std::string& name) {
    DecodeLimits limits;
    limits.*limit = allowed;
    Status at = decode(limits);
    EXPECT_TRUE(at.ok()) << name << ": " << text(at);
    limits.*limit = allowed - step;
    Status beyond = decode(limits);
    EXPECT_FALSE(beyond.ok()) << name;
    EXPECT_NE(text(beyond).find("more than the limit"), std::string::npos) << text(beyond);
    EXPECT_NE(text(beyond).find(name), std::string::npos) << text(beyond);
  }

  static inline TemporaryFolder* folder_ = nullptr;
};

TEST_F(MediaLimits, HoldForVideo) {
  const ClipOptions options{.frames = FrameSelection::first(7)};
  auto decode = [&](const DecodeLimits& l) { return decode_video(*folder_ / "a.mp4", options, l); };
  expect_limit<std::int64_t>(decode, &DecodeLimits::frame_pixels, 64 * 48, 1, "frame_pixels");
  expect_limit<std::int64_t>(decode, &DecodeLimits::frames_kept, 7, 1, "frames_kept");
  expect_limit<std::int64_t>(decode, &DecodeLimits::decoded_bytes, 7 * 64 * 48 * 3, 1,
                             "decoded_bytes");
  expect_limit<int>(decode, &DecodeLimits::streams, 2, 1, "streams");
  VideoInfo info;
  ASSERT_TRUE(probe_video(*folder_ / "a.mp4", info).ok());
  expect_limit<double>(decode, &DecodeLimits::duration_seconds, 2.1, 0.2, "duration_seconds");
}

TEST_F(MediaLimits, HoldForGif) {
  const ClipOptions options{.frames = FrameSelection::first(7)};
  auto decode = [&](const DecodeLimits& l) { return decode_gif(*folder_ / "a.gif", options, l); };
  expect_limit<std::int64_t>(decode, &DecodeLimits::frame_pixels, 64 * 48, 1, "frame_pixels");
  expect_limit<std::int64_t>(decode, &DecodeLimits::frames_kept, 7, 1, "frames_kept");
  expect_limit<std::int64_t>(decode, &DecodeLimits::decoded_bytes, 7 * 64 * 48 * 3, 1,
                             "decoded_bytes");
  expect_limit<double>(decode, &DecodeLimits::duration_seconds, 2.0, 0.01, "duration_seconds");
}

TEST_F(MediaLimits, HoldForAudio) {
  for (const char* name : {"a.wav", "a.flac"}) {
    SCOPED_TRACE(name);
    auto decode = [&](const DecodeLimits& l) { return decode_audio(*folder_ / name, l); };
    expect_limit<int>(decode, &DecodeLimits::channels, 2, 1, "channels");
    expect_limit<int>(decode, &DecodeLimits::sample_rate_hz, 44'100, 1, "sample_rate_hz");
    expect_limit<double>(decode, &DecodeLimits::duration_seconds, 2.5, 0.6, "duration_seconds");
  }
}

TEST_F(MediaLimits, ADeadlineEndsEveryDecode) {
  const DecodeLimits none{.deadline_seconds = 0};
  for (const Status& status :
       {decode_video(*folder_ / "a.mp4", {}, none), decode_gif(*folder_ / "a.gif", {}, none),
        decode_audio(*folder_ / "a.flac", none), decode_audio(*folder_ / "a.wav", none)}) {
    ASSERT_FALSE(status.ok());
    EXPECT_NE(text(status).find("within the deadline of 0"), std::string::npos) << text(status);
  }
}

// A file that names other resources opens none of them.
TEST_F(MediaLimits, PlaylistsAreRefused) {
  const std::string clip = (*folder_ / "a.mp4").string();
  std::ofstream(*folder_ / "a.m3u8") << "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n"
                                     << clip << "\n#EXT-X-ENDLIST\n";
  std::ofstream(*folder_ / "a.ffconcat") << "ffconcat version 1.0\nfile a.mp4\n";
  std::ofstream(*folder_ / "a.mpd")
      << "<?xml version=\"1.0\"?><MPD xmlns=\"urn:mpeg:dash:schema:mpd:2011\" type=\"static\">"
         "<Period><AdaptationSet><Representation><BaseURL>a.mp4</BaseURL></Representation>"
         "</AdaptationSet></Period></MPD>";
  std::ofstream(*folder_ / "a.sdp") << "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\n"
                                       "t=0 0\nm=video 5004 RTP/AVP 96\n";
  std::ofstream(*folder_ / "frame%03d.png") << "no picture";
  for (const char* name : {"a.m3u8", "a.ffconcat", "a.mpd", "a.sdp", "frame%03d.png"}) {
    Status status = decode_video(*folder_ / name, {}, {});
    EXPECT_FALSE(status.ok()) << name;
    EXPECT_NE(text(status).find(name), std::string::npos);
  }
}

// Ogg takes it from a comment; to seek in that one ends the process inside of libav.
TEST_F(MediaLimits, CoverPicturesAreNoVideo) {
  TemporaryFolder folder;
  run_python(R"(
import base64, io, struct, subprocess, sys
from PIL import Image
out, png = sys.argv[1], io.BytesIO()
Image.new('RGB', (8, 8)).save(png, 'PNG')
open(out + '/cover.png', 'wb').write(png.getvalue())
block = struct.pack('>II', 3, 9) + b'image/png' + struct.pack('>6I', 0, 8, 8, 24, 0, len(png.getvalue())) + png.getvalue()
comment = 'METADATA_BLOCK_PICTURE=' + base64.b64encode(block).decode()
tone = ['ffmpeg', '-nostdin', '-v', 'error', '-f', 'lavfi', '-i', 'sine=duration=0.3:sample_rate=48000']
subprocess.run(tone + ['-c:a', 'libopus', '-metadata:s:a', comment, out + '/a.ogg'], check=True)
for name in ('a.mp3', 'a.flac', 'a.m4a'):
    subprocess.run(tone + ['-i', out + '/cover.png', '-map', '0', '-map', '1', '-c:v', 'copy',
                           '-disposition:v', 'attached_pic', out + '/' + name], check=True)
)",
             folder.path().string());
  for (const char* name : {"a.ogg", "a.mp3", "a.flac", "a.m4a"}) {
    EXPECT_NE(text(decode_video(folder / name, {}, {})).find("only a cover picture"),
              std::string::npos)
        << name;
    EXPECT_EQ(text(decode_audio(folder / name, {})), "") << name;
  }
}

TEST_F(MediaLimits, ErrorsNameTheFileTheMediumAndTheReason) {
  auto make = [&](const std::string& name, const std::string& content) {
    std::ofstream(*folder_ / name, std::ios::binary) << content;
    return *folder_ / name;
  };
  const std::string mp4 = [&] {
    auto bytes = read_bytes(*folder_ / "a.mp4");
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }();
  ASSERT_EQ(mkfifo((*folder_ / "pipe.mp4").c_str(), 0600), 0);
  run_ffmpeg("-f lavfi -i sine=duration=1 -c:a aac '" + (*folder_ / "sound.m4a").string() + "'");
  struct Row {
    std::string file;
    Status status;
    std::string reason;
  };
  Row rows[] = {
      {"none.mp4", decode_video(*folder_ / "none.mp4", {}, {}), "video: cannot open (No such file"},
      {"empty.mp4", decode_video(make("empty.mp4", ""), {}, {}), "video: the file is empty"},
      {"text.bin", decode_video(make("text.bin", std::string(900, 'x')), {}, {}),
       "video: not a known container"},
      {"pipe.mp4", decode_video(*folder_ / "pipe.mp4", {}, {}), "video: not a regular file"},
      {"cut.mp4", decode_video(make("cut.mp4", mp4.substr(0, 600)), {}, {}),
       "video: cannot read the mov,mp4"},
      {"sound.m4a", decode_video(*folder_ / "sound.m4a", {}, {}), "there is no video stream"},
      {"none.gif", decode_gif(*folder_ / "none.gif", {}, {}), "gif: cannot open"},
      {"text.gif", decode_gif(make("text.gif", "GIFT of text and more of it"), {}, {}),
       "gif: not a GIF file"},
      {"bare.gif",
       decode_gif(make("bare.gif", std::string("GIF89a\x08\0\x08\0\0\0\0;", 14)), {}, {}),
       "gif: there is no image in the file"},
      {"cut.gif",
       decode_gif(make("cut.gif", std::string("GIF89a\x08\0\x08\0\x80\0\0\0\0\0\1\1\1,\0\0\0\0\x08"
                                              "\0\x08\0\0\2\2\x84\x51\0;",
                                              35)),
                  {}, {}),
       "gif: frame 0: the image data are broken"},
      {"none.wav", decode_audio(*folder_ / "none.wav", {}), "audio: cannot open"},
      {"text.wav", decode_audio(make("text.wav", std::string(900, 'x')), {}),
       "audio: not a known container"},
      {"a.gif", decode_audio(*folder_ / "a.gif", {}), "audio: there is no audio stream"},
  };
  for (const Row& row : rows) {
    ASSERT_FALSE(row.status.ok()) << row.file;
    const std::string message = text(row.status);
    std::cout << "  " << row.file << " -> " << message << "\n";
    EXPECT_NE(message.find((*folder_ / row.file).string()), std::string::npos) << message;
    EXPECT_NE(message.find(row.reason), std::string::npos) << message;
  }
}

TEST_F(MediaLimits, WrongOptionsAreErrorsOfUse) {
  auto kind = [](const Status& status) {
    return status.ok() ? ErrorKind::data : status.error().kind();
  };
  const auto path = *folder_ / "a.mp4";
  EXPECT_EQ(kind(decode_video(path, {.frames = FrameSelection::first(0)}, {})), ErrorKind::usage);
  EXPECT_EQ(kind(decode_video(path, {.channels = 2}, {})), ErrorKind::usage);
  EXPECT_EQ(kind(decode_video(path, {.height = 8}, {})), ErrorKind::usage);
  EXPECT_EQ(kind(decode_video(path, {.frames = FrameSelection::random_window(3)}, {})),
            ErrorKind::usage);
  EXPECT_EQ(kind(decode_video(path, {.frames = FrameSelection::at_times({-1.0})}, {})),
            ErrorKind::usage);
  VideoReader reader;
  ASSERT_TRUE(reader.open(path).ok());
  std::vector<std::uint8_t> wrong(10);
  ClipResult result;
  EXPECT_EQ(kind(reader.decode({}, wrong, result)), ErrorKind::usage);
  reader.close();
  EXPECT_EQ(kind(reader.decode({}, wrong, result)), ErrorKind::usage);
}

}  // namespace
}  // namespace millrace
