#include "tests/datasets/media_samples.h"
#include "tests/decoders/media_reference.h"
#include "tests/reference.h"

#include <millrace/datasets/compose/collations.h>
#include <millrace/datasets/folders/gif_text_folder.h>
#include <millrace/datasets/folders/image_folder.h>
#include <millrace/datasets/folders/video_folder.h>
#include <millrace/pipeline/loader/loader.h>

#include <set>

#include <gtest/gtest.h>

namespace millrace {
namespace {

struct Loaded {
  Shape shape;
  std::vector<std::uint8_t> video;
  std::int64_t valid = 0;
};

Loaded load(const Dataset& clips, std::int64_t index, std::int64_t epoch = 0) {
  Sample sample(clips.schema());
  Status status = clips.load(index, {.epoch = epoch, .index = index}, sample);
  EXPECT_TRUE(status.ok()) << status.error().what();
  if (!status.ok()) return {};
  auto values = sample["video"].as<std::uint8_t>();
  return {sample["video"].shape(),
          {values.begin(), values.end()},
          sample["valid_frames"].as<std::int64_t>()[0]};
}

// The mean of each frame: the clip below counts with it.
std::vector<int> brightness(const Loaded& clip) {
  std::vector<int> means;
  auto frames = static_cast<std::size_t>(clip.shape[0]);
  std::size_t bytes = clip.video.size() / frames;
  for (std::size_t f = 0; f < frames; ++f) {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < bytes; ++i) sum += clip.video[f * bytes + i];
    means.push_back(static_cast<int>(sum / static_cast<std::int64_t>(bytes)));
  }
  return means;
}

// 24 frames, each 10 brighter than the one before, without loss; and a short one.
class VideoFolderTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    auto make = [](const std::string& name, int frames) {
      run_ffmpeg("-f lavfi -i \"color=black:s=48x32:r=8,format=gray,geq=lum='10*N'\" -frames:v " +
                 std::to_string(frames) + " -c:v ffv1 -pix_fmt gray '" +
                 (*folder_ / name).string() + "'");
    };
    make("a.mkv", 24);
    make("short.MKV", 5);
  }
  static void TearDownTestSuite() { delete folder_; }
  static TemporaryFolder* folder_;
};
TemporaryFolder* VideoFolderTest::folder_ = nullptr;

TEST_F(VideoFolderTest, TakesTheFramesAskedFor) {
  auto frames = [&](VideoFolderOptions options) {
    options.frames = 6;
    options.size = 0;
    return brightness(load(VideoFolder(folder_->path(), options), 0));
  };
  EXPECT_EQ(frames({}), (std::vector{0, 10, 20, 30, 40, 50}));
  EXPECT_EQ(frames({.stride = 3}), (std::vector{0, 30, 60, 90, 120, 150}));
  EXPECT_EQ(frames({.choice = FrameChoice::at_fps, .fps = 4}),
            (std::vector{0, 20, 40, 60, 80, 100}));
  auto uniform = frames({.choice = FrameChoice::uniform});
  EXPECT_EQ(uniform.front(), 0);
  EXPECT_EQ(uniform.back(), 230);
}

TEST_F(VideoFolderTest, TakesRandomWindowsByEpoch) {
  VideoFolder clips(folder_->path(),
                    {.frames = 6, .size = 0, .choice = FrameChoice::random_window, .stride = 2});
  std::set<int> starts;
  for (std::int64_t epoch = 0; epoch < 30; ++epoch) {
    auto window = brightness(load(clips, 0, epoch));
    EXPECT_EQ(window, brightness(load(clips, 0, epoch)));
    for (std::size_t i = 1; i < 6; ++i) EXPECT_EQ(window[i] - window[i - 1], 20);
    starts.insert(window[0]);
  }
  EXPECT_GT(starts.size(), 6U);
  EXPECT_EQ(*starts.begin() / 10, 0);
}

TEST_F(VideoFolderTest, FillsShortClipsByRule) {
  auto frames = [&](ShortClip rule) {
    Loaded clip =
        load(VideoFolder(folder_->path(), {.frames = 8, .size = 0, .short_clip = rule}), 1);
    EXPECT_EQ(clip.valid, 5);
    return brightness(clip);
  };
  EXPECT_EQ(frames(ShortClip::repeat_last), (std::vector{0, 10, 20, 30, 40, 40, 40, 40}));
  EXPECT_EQ(frames(ShortClip::black), (std::vector{0, 10, 20, 30, 40, 0, 0, 0}));
  EXPECT_EQ(frames(ShortClip::loop), (std::vector{0, 10, 20, 30, 40, 0, 10, 20}));
  VideoFolder strict(folder_->path(), {.frames = 8, .short_clip = ShortClip::error});
  Sample sample(strict.schema());
  EXPECT_FALSE(strict.load(1, {.index = 1}, sample).ok());
}

TEST_F(VideoFolderTest, TakesAllFramesHoweverMany) {
  VideoFolder clips(folder_->path(), {.frames = 0, .size = 16, .channels = 1});
  EXPECT_EQ(to_string(clips.schema()[0].shape), "[-1, 16, 16, 1]");
  EXPECT_EQ(load(clips, 0).shape, (Shape{24, 16, 16, 1}));
  EXPECT_EQ(load(clips, 1).shape, (Shape{5, 16, 16, 1}));
  Loader loader(clips, {.batch_size = 2, .threads = 1, .collate = collate_clips(clips.schema())});
  auto batch = loader.next();
  EXPECT_EQ((*batch)["video"].shape(), (Shape{2, 24, 16, 16, 1}));
  EXPECT_EQ(batch->lengths("video").as<std::int64_t>()[1], 5);
}

TEST_F(VideoFolderTest, HasTheDesignsShapeByDefault) {
  VideoFolder clips(folder_->path(), {.frames = 17, .size = {128, 128}});
  EXPECT_EQ(to_string(clips.schema()), "video uint8 [17, 128, 128, 3], valid_frames int64 []");
  VideoFolder planes(folder_->path(), {.size = {8, 12}, .layout = ClipLayout::cthw});
  EXPECT_EQ(load(planes, 0).shape, (Shape{3, 17, 8, 12}));
}

TEST(VideoFolder, TakesPicturesAsClipsOfOneFrameIfAsked) {
  TemporaryFolder folder;
  write_picture(folder / "a.png", 3);
  write_clip(folder / "b.gif", 1);
  EXPECT_EQ(VideoFolder(folder.path()).size(), 1);
  for (ClipLayout layout : {ClipLayout::thwc, ClipLayout::cthw}) {
    VideoFolder clips(folder.path(), {.frames = 3, .size = 16, .layout = layout, .pictures = true});
    ASSERT_EQ(clips.size(), 2);
    Loaded clip = load(clips, 0);
    EXPECT_EQ(clip.valid, 1);
    bool planes = layout == ClipLayout::cthw;
    ImageFolder images(folder.path(), {.size = 16,
                                       .layout = planes ? Layout::chw : Layout::hwc,
                                       .files = {.extensions = {"png"}}});
    Sample image(images.schema());
    ASSERT_TRUE(images.load(0, {}, image).ok());
    auto pixels = image["image"].as<std::uint8_t>();
    std::size_t block = planes ? 256 : 768;
    for (std::size_t i = 0; i < clip.video.size(); ++i) {
      std::size_t from = planes ? i / (3 * block) * block + i % block : i % block;
      ASSERT_EQ(clip.video[i], pixels[from]) << i;
    }
  }
}

TEST(VideoFolder, RefusesOptionsThatCannotBe) {
  TemporaryFolder folder;
  write_clip(folder / "a.gif", 1);
  for (const VideoFolderOptions& options :
       {VideoFolderOptions{.frames = -1}, VideoFolderOptions{.size = {0, 4}},
        VideoFolderOptions{.stride = 0}, VideoFolderOptions{.choice = FrameChoice::at_fps},
        VideoFolderOptions{.frames = 0, .choice = FrameChoice::uniform},
        VideoFolderOptions{.channels = 4}}) {
    EXPECT_THROW(VideoFolder(folder.path(), options), Error);
  }
}

TEST(GifTextFolder, HasPillowsFramesAndTokens) {
  TemporaryFolder folder;
  for (int i = 0; i < 3; ++i) {
    write_clip(folder / (std::to_string(i) + ".gif"), i, 3 + i);
    write_file(folder / (std::to_string(i) + ".txt"),
               "caption:" + std::string(static_cast<std::size_t>(i), 'x'));
  }
  GifTextFolder gifs(folder.path(), {.frames = 4,
                                     .size = 0,
                                     .channels = 3,
                                     .captions = {.tokenizer = byte_tokenizer(), .max_tokens = 9}});
  run_python(R"(
import sys
from PIL import Image
for i in range(3):
    image, out = Image.open(f'{sys.argv[1]}/{i}.gif'), open(f'{sys.argv[1]}/{i}.rgb', 'wb')
    for f in range(4):
        image.seek(min(f, image.n_frames - 1))
        out.write(image.convert('RGB').tobytes())
)",
             folder.path().string());
  Sample sample(gifs.schema());
  for (std::int64_t i = 0; i < 3; ++i) {
    sample.restart();
    ASSERT_TRUE(gifs.load(i, {.index = i}, sample).ok());
    std::string expected = read_whole(folder / (std::to_string(i) + ".rgb"));
    auto video = sample["video"].as<std::uint8_t>();
    EXPECT_TRUE(
        std::equal(video.begin(), video.end(), expected.begin(), expected.end(),
                   [](std::uint8_t a, char b) { return a == static_cast<std::uint8_t>(b); }));
    EXPECT_EQ(sample["valid_frames"].as<std::int64_t>()[0], std::min<std::int64_t>(3 + i, 4));
    auto tokens = sample["tokens"].as<std::int64_t>();
    EXPECT_EQ(tokens.size(), std::min<std::size_t>(8 + static_cast<std::size_t>(i), 9));
    EXPECT_EQ(tokens[0], 'c' + 1);
  }
}

}  // namespace
}  // namespace millrace
