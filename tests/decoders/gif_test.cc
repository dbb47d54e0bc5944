#include "tests/decoders/media_reference.h"

#include <millrace/decoders/gif.h>

#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

namespace millrace {
namespace {

std::string read_script(const std::string& name) {
  std::ostringstream text;
  text << std::ifstream(std::string(MILLRACE_SOURCE_DIR "/tests/decoders/") + name).rdbuf();
  return text.str();
}

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
    std::istringstream lines(run_python(read_script("make_gifs.py"), folder_->path().string()));
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

}  // namespace
}  // namespace millrace
