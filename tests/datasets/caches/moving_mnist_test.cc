#include "tests/datasets/media_samples.h"
#include "tests/reference.h"

#include <millrace/datasets/arrays/moving_mnist.h>
#include <millrace/pipeline/loader/loader.h>

#include <gtest/gtest.h>

namespace millrace {
namespace {

// Written by numpy: as .npy, as a raw memmap, and turned by rot90.
class MovingMnistTest : public ::testing::Test {
 protected:
  MovingMnistTest() {
    run_python(R"(
import sys, numpy as np
root, rng = sys.argv[1], np.random.default_rng(5)
videos = rng.integers(0, 256, (6, 4, 1, 8, 8), dtype=np.uint8)
digits = rng.integers(0, 10, (6, 2), dtype=np.uint8)
np.save(f'{root}/videos.npy', videos)
np.save(f'{root}/flat.npy', videos[:, :, 0])
np.save(f'{root}/floats.npy', videos.astype(np.float32))
memmap = np.memmap(f'{root}/videos.bin', mode='w+', dtype=np.uint8, shape=videos.shape)
memmap[:] = videos
memmap.flush()
np.memmap(f'{root}/digits.bin', mode='w+', dtype=np.uint8, shape=digits.shape)[:] = digits
np.save(f'{root}/digits.npy', digits)
colours = rng.integers(0, 256, (6, 4, 3, 8, 8), dtype=np.uint8)
np.save(f'{root}/colours.npy', colours)
np.ascontiguousarray(colours.transpose(0, 1, 3, 4, 2)).tofile(f'{root}/thwc')
np.ascontiguousarray(colours.transpose(0, 2, 1, 3, 4)).tofile(f'{root}/cthw')
for k in range(4):
    turned = np.rot90(videos, k, axes=(3, 4))
    np.ascontiguousarray(turned).tofile(f'{root}/turned{k}')
open(f'{root}/captions', 'w').write('\n'.join(' '.join(map(str, d)) for d in digits.tolist()))
open(f'{root}/texts', 'w').write('one\nzwei\n\nvier é\nfive\nsix\n')
)",
               folder_.path().string());
  }
  static std::string load(const Dataset& clips, std::int64_t index, std::int64_t epoch = 0) {
    Sample sample(clips.schema());
    Status status = clips.load(index, {.epoch = epoch, .index = index}, sample);
    EXPECT_TRUE(status.ok()) << status.error().what();
    const Array& video = sample["video"];
    return {reinterpret_cast<const char*>(video.data()), video.bytes()};
  }
  static std::string all(const Dataset& clips) {
    std::string bytes;
    for (std::int64_t i = 0; i < clips.size(); ++i) bytes += load(clips, i);
    return bytes;
  }
  TemporaryFolder folder_;
};

TEST_F(MovingMnistTest, ReadsWhatNumpyWrote) {
  std::string expected = read_whole(folder_ / "turned0");
  for (const char* name : {"videos.npy", "flat.npy"}) {
    EXPECT_EQ(all(MovingMnist(folder_ / name)), expected) << name;
  }
  MovingMnist raw(folder_ / "videos.bin",
                  {.clips = 6, .frames = 4, .size = 8, .digits = folder_ / "digits.bin"});
  EXPECT_EQ(all(raw), expected);
  EXPECT_EQ(to_string(raw.schema()), "video uint8 [4, 8, 8, 1], caption text");
  EXPECT_EQ(all(MovingMnist(folder_ / "colours.npy")), read_whole(folder_ / "thwc"));
  EXPECT_EQ(all(MovingMnist(folder_ / "colours.npy", {.layout = ClipLayout::cthw})),
            read_whole(folder_ / "cthw"));
}

TEST_F(MovingMnistTest, HasDigitsOrAnyTextsAsCaptions) {
  std::istringstream lines(read_whole(folder_ / "captions"));
  for (const char* name : {"digits.npy", "digits.bin"}) {
    MovingMnist clips(folder_ / "videos.npy", {.digits = folder_ / name});
    lines.clear();
    lines.seekg(0);
    for (std::int64_t i = 0; i < 6; ++i) {
      std::string line;
      std::getline(lines, line);
      EXPECT_EQ(clips.caption(i), line);
    }
  }
  MovingMnist texts(folder_ / "videos.npy", {.texts = folder_ / "texts"});
  Loader loader(texts, {.batch_size = 6, .threads = 1});
  auto batch = loader.next();
  EXPECT_EQ(batch->texts("caption")[2], "");
  EXPECT_EQ(batch->texts("caption")[3], "vier é");
}

TEST_F(MovingMnistTest, TurnsClipsByQuartersThatDependOnSeedEpochAndIndex) {
  MovingMnist clips(folder_ / "videos.npy", {.rotate = true});
  std::string turned[4];
  for (int k = 0; k < 4; ++k) turned[k] = read_whole(folder_ / ("turned" + std::to_string(k)));
  int seen[4] = {};
  for (std::int64_t epoch = 0; epoch < 10; ++epoch) {
    for (std::int64_t i = 0; i < 6; ++i) {
      std::string clip = load(clips, i, epoch);
      EXPECT_EQ(clip, load(clips, i, epoch));
      int found = 0;
      for (int k = 0; k < 4; ++k) {
        if (turned[k].substr(static_cast<std::size_t>(i) * 256, 256) != clip) continue;
        ++seen[k];
        ++found;
      }
      EXPECT_EQ(found, 1);
    }
  }
  for (int count : seen) EXPECT_GT(count, 4);
}

TEST_F(MovingMnistTest, RefusesWhatDoesNotFit) {
  auto fails = [&](const std::string& name, MovingMnistOptions options, const std::string& why) {
    try {
      MovingMnist clips(folder_ / name, options);
      ADD_FAILURE() << why;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(why), std::string::npos) << error.what();
    }
  };
  fails("floats.npy", {}, "must be uint8");
  fails("digits.npy", {}, "[6, 2]");
  fails("missing.npy", {}, "missing.npy");
  fails("videos.bin", {.frames = 3, .size = 9}, "videos.bin");
  write_file(folder_ / "few", "a\nb\n");
  fails("videos.npy", {.texts = folder_ / "few"}, "2 captions for 6 clips");
  fails("videos.npy", {.digits = folder_ / "digits.npy", .texts = folder_ / "few"},
        "not from both");
}

}  // namespace
}  // namespace millrace
