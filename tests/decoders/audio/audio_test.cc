#include "tests/decoders/media_reference.h"

#include <millrace/decoders/audio/audio.h>
#include <millrace/pipeline/base/random.h>

#include <cmath>
#include <cstring>
#include <limits>

#include <gtest/gtest.h>

namespace millrace {
namespace {

constexpr int rate = 44'100;
constexpr std::int64_t length = 136'710;  // 3.1 s

struct SoundCase {
  const char* name;
  const char* file;
  const char* arguments;
  double window_error;  // of windows against slices of the whole
  bool lossless = false;
};

void PrintTo(const SoundCase& sound, std::ostream* out) {
  *out << sound.name;
}

// Opus and AAC predict from what was before for ever; after the warm-up the difference is far below
// one step of 16 bit.
const SoundCase cases[] = {
    {"Wav", "a.wav", "-c:a pcm_s16le", 0, true},
    {"Wav8Bit", "a.wav", "-c:a pcm_u8", 0, true},
    {"Wav24Bit", "a.wav", "-c:a pcm_s24le", 0, true},
    {"WavFloat", "a.wav", "-c:a pcm_f32le", 0, true},
    {"WavMuLaw", "a.wav", "-c:a pcm_mulaw", 0, true},
    {"Aiff", "a.aiff", "-c:a pcm_s16be", 0, true},
    {"Flac", "a.flac", "-c:a flac", 0, true},
    {"Flac24Bit", "a.flac", "-c:a flac -sample_fmt s32", 0, true},
    {"OggFlac", "a.oga", "-c:a flac", 0, true},
    {"Mp3", "a.mp3", "-c:a libmp3lame -b:a 128k", 0},
    {"Mp3Variable", "a.mp3", "-c:a libmp3lame -q:a 4", 0},
    {"Vorbis", "a.ogg", "-c:a libvorbis", 0},
    {"Opus", "a.opus", "-c:a libopus", 1e-5},
    {"M4a", "a.m4a", "-c:a aac -b:a 128k -aac_pns 0", 1e-5},
    {"MatroskaVorbis", "a.mka", "-c:a libvorbis", 0},
    {"WebmOpus", "a.webm", "-c:a libopus", 0},
};

const std::string source =
    "-f lavfi -i \"aevalsrc='0.4*sin(2*PI*440*t)+0.2*sin(2*PI*(300+900*t)*t)|"
    "0.3*sin(2*PI*1234*t)+0.1*random(0)':s=44100:d=3.1\" -bitexact ";

std::vector<float> to_floats(const std::string& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

// Interleaved to planar.
std::vector<float> planes(const std::vector<float>& values, std::size_t channels) {
  std::vector<float> result(values.size());
  const std::size_t n = values.size() / channels;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t c = 0; c < channels; ++c) result[c * n + i] = values[i * channels + c];
  }
  return result;
}

double signal_to_noise_db(std::span<const float> reference, std::span<const float> actual) {
  double signal = 0, noise = 0;
  for (std::size_t i = 0; i < std::min(reference.size(), actual.size()); ++i) {
    signal += std::pow(reference[i], 2);
    noise += std::pow(reference[i] - actual[i], 2);
  }
  return noise == 0 ? 999 : 10 * std::log10(signal / noise);
}

class Sound : public testing::TestWithParam<SoundCase> {
 protected:
  void SetUp() override {
    path_ = folder_ / GetParam().file;
    run_ffmpeg(source + GetParam().arguments + " '" + path_.string() + "'");
    Status status = reader_.open(path_);
    ASSERT_TRUE(status.ok()) << status.error().what();
  }
  std::vector<float> all(const AudioOptions& options) {
    std::vector<float> sound;
    AudioResult result;
    Status status = reader_.decode_all(options, sound, result);
    EXPECT_TRUE(status.ok()) << status.error().what();
    return sound;
  }
  std::vector<float> reference(const std::string& arguments = "") {
    return to_floats(
        run_ffmpeg("-i '" + path_.string() + "' " + arguments + " -c:a pcm_f32le -f f32le -"));
  }
  bool is_opus() const {
    return std::string(GetParam().arguments).find("opus") != std::string::npos;
  }

  TemporaryFolder folder_;
  std::filesystem::path path_;
  AudioReader reader_;
};

TEST_P(Sound, LengthIsExactToTheSample) {
  const std::int64_t expected = is_opus() ? length * 48'000 / rate : length;
  const std::int64_t actual = std::ssize(all({})) / 2;
  if (GetParam().name == std::string("MatroskaVorbis")) {
    EXPECT_NEAR(actual, expected, 1024);  // this container cuts nothing at the end
  } else {
    EXPECT_EQ(actual, expected);
    const bool is_rough =
        GetParam().file == std::string("a.mp3") || GetParam().file == std::string("a.webm");
    EXPECT_NEAR(reader_.info().samples, expected, is_rough ? 1152 : 0);
  }
}

TEST_P(Sound, EqualsWhatFfmpegDecodes) {
  std::vector<float> expected = planes(reference(), 2), actual = all({});
  const std::size_t n = actual.size() / 2, m = expected.size() / 2;
  for (std::size_t c = 0; c < 2; ++c) {
    EXPECT_GT(signal_to_noise_db(std::span(expected).subspan(c * m, std::min(n, m)),
                                 std::span(actual).subspan(c * n, n)),
              90);
  }
}

TEST_P(Sound, ResampledAndMixedEqualsFfmpegs) {
  std::vector<float> expected = reference("-ar 24000 -ac 1");
  std::vector<float> actual = all({.sample_rate_hz = 24'000, .channels = 1});
  EXPECT_NEAR(std::ssize(actual), std::ssize(expected), GetParam().name[0] == 'M' ? 300 : 2);
  // The very end sees what comes after the cut, where we cut and ffmpeg does not.
  const std::size_t n = std::min(actual.size(), expected.size()) - 40;
  EXPECT_GT(signal_to_noise_db(std::span(expected).first(n), std::span(actual).first(n)), 90);
}

TEST_P(Sound, WindowsEqualSlicesOfTheWhole) {
  for (int to_rate : {0, 24'000, 16'000, 96'000}) {
    const AudioOptions whole{.sample_rate_hz = to_rate, .channels = to_rate == 0 ? 0 : 1};
    std::vector<float> sound = all(whole);
    const std::size_t channels = to_rate == 0 ? 2 : 1;
    const std::int64_t n = std::ssize(sound) / static_cast<std::int64_t>(channels);
    Random random(9, 0, to_rate, "windows");
    for (int k = 0; k < 25; ++k) {
      AudioOptions window = whole;
      window.samples = 1 + random.below(k < 20 ? n / 3 : 100);
      window.start = random.below(n);  // some reach over the end
      std::vector<float> part(static_cast<std::size_t>(window.samples) * channels, 9.0F);
      AudioResult result;
      Status status = reader_.decode(window, part, result);
      ASSERT_TRUE(status.ok()) << status.error().what();
      ASSERT_EQ(result.valid, std::min(window.samples, n - window.start));
      float worst = 0;
      for (std::size_t c = 0; c < channels; ++c) {
        for (std::int64_t i = 0; i < window.samples; ++i) {
          const float value =
              part[c * static_cast<std::size_t>(window.samples) + static_cast<std::size_t>(i)];
          const float expected = i < result.valid
                                     ? sound[c * static_cast<std::size_t>(n) +
                                             static_cast<std::size_t>(window.start + i)]
                                     : 0;
          worst = std::max(worst, std::abs(value - expected));
        }
      }
      EXPECT_LE(worst, GetParam().window_error)
          << "from " << window.start << " of " << n << " at " << to_rate << " Hz";
    }
  }
}

TEST_P(Sound, SixteenBitIsTheSameRounded) {
  std::vector<std::int16_t> words(2 * 5000);
  std::vector<float> floats(words.size());
  const AudioOptions window{.start = 30'000, .samples = 5000};
  AudioResult result;
  ASSERT_TRUE(reader_.decode(window, words, result).ok());
  ASSERT_TRUE(reader_.decode(window, floats, result).ok());
  for (std::size_t i = 0; i < words.size(); ++i) {
    ASSERT_NEAR(words[i], floats[i] * 32768, 1.01) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, Sound, testing::ValuesIn(cases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Wav, WrittenFilesAreReadBackBySoundfile) {
  TemporaryFolder folder;
  std::vector<float> floats;
  std::vector<std::int16_t> words;
  for (int c = 0; c < 2; ++c) {
    for (int i = 0; i < 1001; ++i) {
      floats.push_back(static_cast<float>(std::sin(0.01 * i * (c + 1))));
      words.push_back(static_cast<std::int16_t>(30'000 * floats.back()));
    }
  }
  ASSERT_TRUE(write_wav(folder / "f.wav", floats, 2, 22'050).ok());
  ASSERT_TRUE(write_wav(folder / "w.wav", words, 2, 8000).ok());
  ASSERT_TRUE(write_wav(folder / "odd.wav", std::span(words).first(7), 1, 8000).ok());
  EXPECT_EQ(run_python(R"(
import sys, soundfile as sf, numpy as np
f, rate = sf.read(sys.argv[1] + '/f.wav', dtype='float32')
i = np.arange(1001)
want = np.stack([np.sin(0.01 * i), np.sin(0.02 * i)], 1)
print(rate, f.shape, sf.info(sys.argv[1] + '/f.wav').subtype, bool(np.abs(f - want).max() < 1e-6))
w, rate = sf.read(sys.argv[1] + '/w.wav', dtype='int16')
print(rate, w.shape, bool(np.abs(w - np.trunc(30000 * want)).max() <= 1))
print(len(sf.read(sys.argv[1] + '/odd.wav')[0]))
)",
                       folder.path().string()),
            "22050 (1001, 2) FLOAT True\n8000 (1001, 2) True\n7\n");
  AudioReader reader;
  ASSERT_TRUE(reader.open(folder / "f.wav").ok());
  std::vector<float> again;
  AudioResult result;
  ASSERT_TRUE(reader.decode_all({}, again, result).ok());
  EXPECT_EQ(again, floats);
  EXPECT_FALSE(write_wav(folder / "x.wav", std::span(words).first(7), 2, 8000).ok());
}

TEST(Wav, SoundfileReadsTheSameSamples) {
  TemporaryFolder folder;
  run_ffmpeg(source + "'" + (folder / "a.flac").string() + "'");
  const std::string expected = run_python(
      "import sys, soundfile as sf\n"
      "sys.stdout.buffer.write(sf.read(sys.argv[1], dtype='float32')[0].T.tobytes())\n",
      (folder / "a.flac").string());
  AudioReader reader;
  ASSERT_TRUE(reader.open(folder / "a.flac").ok());
  std::vector<float> sound;
  AudioResult result;
  ASSERT_TRUE(reader.decode_all({}, sound, result).ok());
  EXPECT_TRUE(to_floats(expected) == sound);
}

}  // namespace
}  // namespace millrace
