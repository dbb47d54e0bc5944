// Sounds of awkward lengths: what was put in comes out, to the sample, however short the sound is.
// The references are the number of samples given to the encoder and libsndfile.
#include "tests/decoders/media_reference.h"

#include <millrace/decoders/audio/audio.h>

#include <cmath>
#include <fstream>
#include <string_view>

#include <gtest/gtest.h>

namespace millrace {
namespace {

constexpr int rate = 48'000;  // Opus has no other

struct Kind {
  const char* name;
  const char* file;
  const char* arguments;
};
void PrintTo(const Kind& kind, std::ostream* out) {
  *out << kind.name;
}

const Kind kinds[] = {
    {"Wav", "a.wav", "-c:a pcm_s16le"},           {"Flac", "a.flac", "-c:a flac"},
    {"Mp3", "a.mp3", "-c:a libmp3lame -b:a 96k"}, {"Vorbis", "a.ogg", "-c:a libvorbis"},
    {"Opus", "a.opus", "-c:a libopus"},           {"M4a", "a.m4a", "-c:a aac"},
};

std::vector<float> tone(std::int64_t samples) {
  std::vector<float> sound(static_cast<std::size_t>(samples));
  for (std::size_t i = 0; i < sound.size(); ++i) {
    sound[i] = 0.3F * std::sin(0.05F * static_cast<float>(i)) + 0.1F;
  }
  return sound;
}

std::vector<float> decode(AudioReader& reader, const std::filesystem::path& path) {
  Status status = reader.open(path);
  EXPECT_TRUE(status.ok()) << status.error().what();
  std::vector<float> sound;
  AudioResult result;
  if (status.ok()) status = reader.decode_all({}, sound, result);
  EXPECT_TRUE(status.ok()) << status.error().what();
  return sound;
}

class AwkwardLength : public testing::TestWithParam<Kind> {
 protected:
  TemporaryFolder folder_;
};

TEST_P(AwkwardLength, ComesOutAsItWentIn) {
  AudioReader reader;
  // One sample: LAME cannot say that there is so much padding, and FFmpeg's MP4 edit has no ticks.
  // 1,025: nor has it ticks for the one sample in the second frame, which FFmpeg then leaves out.
  const bool is_m4a = GetParam().name == std::string_view("M4a");
  const bool can_be_one = std::string_view("Mp3M4a").find(GetParam().name) == std::string::npos;
  for (std::int64_t samples : {1, 63, 1000, 1024, 1025, 4000, 5000, 10'000, 44'100, 48'001}) {
    if ((samples == 1 && !can_be_one) || (samples == 1025 && is_m4a)) continue;
    const auto raw = folder_ / "a.raw", path = folder_ / GetParam().file;
    const std::vector<float> sound = tone(samples);
    std::ofstream(raw, std::ios::binary)
        .write(reinterpret_cast<const char*>(sound.data()), samples * 4);
    run_ffmpeg("-y -f f32le -ar 48000 -ac 1 -i '" + raw.string() + "' " + GetParam().arguments +
               " '" + path.string() + "'");
    EXPECT_EQ(std::ssize(decode(reader, path)), samples);
    // The end is the end of the sound, also for a window that begins just before it.
    if (samples < 5000) continue;
    std::vector<float> end(300);
    AudioResult result;
    Status status = reader.decode({.start = samples - 200, .samples = 300}, end, result);
    ASSERT_TRUE(status.ok()) << status.error().what();
    EXPECT_EQ(result.valid, 200);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, AwkwardLength, testing::ValuesIn(kinds),
                         [](const auto& info) { return info.param.name; });

// libsndfile's Vorbis files have the trim in another packet than FFmpeg's.
TEST(VorbisLength, IsThatOfLibsndfile) {
  TemporaryFolder folder;
  const std::string script =
      "import soundfile, numpy as np, sys\n"
      "for n in (1, 100, 1000, 1024, 1025, 4000, 5000, 10000, 48000):\n"
      "  for rate in (22050, 44100):\n"
      "    x = np.random.default_rng(n).standard_normal((n, 2)) * 0.1\n"
      "    name = f'" +
      folder.path().string() +
      "/{n}_{rate}.ogg'\n"
      "    soundfile.write(name, x, rate, format='OGG', subtype='VORBIS')\n"
      "    soundfile.read(name, dtype='float32')[0].T.tofile(name + '.raw')\n";
  run_python(script);
  AudioReader reader;
  for (int samples : {1, 100, 1000, 1024, 1025, 4000, 5000, 10'000, 48'000}) {
    for (int hertz : {22'050, 44'100}) {
      const std::string name = std::to_string(samples) + "_" + std::to_string(hertz) + ".ogg";
      std::vector<float> actual = decode(reader, folder / name);
      std::vector<float> expected(2 * static_cast<std::size_t>(samples));
      std::ifstream(folder / (name + ".raw"), std::ios::binary)
          .read(reinterpret_cast<char*>(expected.data()), std::ssize(expected) * 4);
      ASSERT_EQ(actual.size(), expected.size()) << name;
      EXPECT_EQ(reader.info().samples, samples) << name;
      for (std::size_t i = 0; i < actual.size(); ++i) {
        ASSERT_NEAR(actual[i], expected[i], 2e-5) << name << " at " << i;
      }
    }
  }
}

// Two files one behind the other are one valid stream of both; its length is not in its last page.
TEST(VorbisLength, ChainedStreamsAreHeardWhole) {
  TemporaryFolder folder;
  run_ffmpeg("-f lavfi -i sine=d=1:r=44100 -serial_offset 1 -c:a libvorbis '" +
             (folder / "a.ogg").string() + "'");
  run_ffmpeg("-f lavfi -i sine=d=0.5:r=44100 -serial_offset 2 -c:a libvorbis '" +
             (folder / "b.ogg").string() + "'");
  std::ofstream(folder / "ab.ogg", std::ios::binary)
      << std::ifstream(folder / "a.ogg", std::ios::binary).rdbuf()
      << std::ifstream(folder / "b.ogg", std::ios::binary).rdbuf();
  AudioReader reader;
  EXPECT_NEAR(std::ssize(decode(reader, folder / "ab.ogg")), 66'150, 2048);
  EXPECT_EQ(reader.info().samples, 0) << "it is not known";
}

}  // namespace
}  // namespace millrace
