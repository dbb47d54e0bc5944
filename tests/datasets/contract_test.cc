// The promises that every folder data set keeps, whatever its medium.
#include "media_samples.h"
#include "tests/reference.h"

#include <millrace/datasets/folders/audio_folder.h>
#include <millrace/datasets/folders/gif_text_folder.h>
#include <millrace/datasets/folders/image_folder.h>
#include <millrace/datasets/folders/mesh_folder.h>
#include <millrace/datasets/folders/video_folder.h>
#include <millrace/pipeline/base/parallel_for.h>
#include <millrace/pipeline/data/subset.h>
#include <millrace/pipeline/loader/loader.h>

#include <atomic>
#include <cctype>
#include <set>

#include <gtest/gtest.h>
#include <sys/stat.h>

namespace millrace {
namespace {

namespace fs = std::filesystem;

// What a kind is: how to make the i-th sample under a stem, and a data set over the folder whose
// samples depend on chance where the medium has any.
struct Images {
  static constexpr const char* extension = ".png";
  static void write(const fs::path& stem, int i) { write_picture(stem.native() + extension, i); }
  static AnyDataset open(const fs::path& folder) {
    return ImageFolder(folder, {.size = 16, .flip = 0.5});
  }
};
struct Clips {
  static constexpr const char* extension = ".gif";
  static void write(const fs::path& stem, int i) { write_clip(stem.native() + extension, i); }
  static AnyDataset open(const fs::path& folder) {
    return VideoFolder(folder, {.frames = 3, .size = 16, .choice = FrameChoice::random_window});
  }
};
struct ClipsWithTexts {
  static constexpr const char* extension = ".gif";
  static void write(const fs::path& stem, int i) {
    write_clip(stem.native() + extension, i);
    write_file(stem.native() + ".txt", "clip " + std::to_string(i));
  }
  static AnyDataset open(const fs::path& folder) {
    return GifTextFolder(folder, {.frames = 3,
                                  .size = 16,
                                  .choice = FrameChoice::random_window,
                                  .captions = {.tokenizer = byte_tokenizer()}});
  }
};
struct Meshes {
  static constexpr const char* extension = ".obj";
  static void write(const fs::path& stem, int i) { write_mesh(stem.native() + extension, i); }
  static AnyDataset open(const fs::path& folder) {
    return MeshFolder(folder, {.text = TextBeside::optional});
  }
};
struct Sounds {
  static constexpr const char* extension = ".wav";
  static void write(const fs::path& stem, int i) { write_sound(stem.native() + extension, i); }
  static AnyDataset open(const fs::path& folder) {
    return AudioFolder(folder,
                       {.sample_rate_hz = 8'000, .samples = 600, .window = AudioWindow::random});
  }
};
struct SoundsWithTexts {
  static constexpr const char* extension = ".wav";
  static void write(const fs::path& stem, int i) {
    write_sound(stem.native() + extension, i, 500 + 10 * i);
    write_file(stem.native() + ".txt", "sound " + std::to_string(i));
  }
  static AnyDataset open(const fs::path& folder) {
    return AudioFolder(folder, {.text = TextBeside::required});
  }
};

template <typename Kind>
class FolderContract : public ::testing::Test {
 protected:
  // 12 samples, in folders and with names that sort otherwise than they were made.
  static constexpr int count = 12;
  FolderContract() {
    for (int i = 0; i < count; ++i) Kind::write(stem(i), i);
  }
  fs::path stem(int i) const {
    return folder_ /
           ("part" + std::to_string(i % 3) + "/" + std::string(1, static_cast<char>('z' - i)));
  }
  static std::string bytes(const Dataset& data, std::int64_t index, std::uint64_t seed,
                           std::int64_t epoch) {
    Sample sample(data.schema());
    Status status = data.load(index, {.seed = seed, .epoch = epoch, .index = index}, sample);
    EXPECT_TRUE(status.ok()) << status.error().what();
    if (!status.ok()) return {};
    EXPECT_EQ(sample.first_unfilled(), -1);
    std::string all;
    for (const Field& field : data.schema()) {
      const Array& value = sample[field.name];
      EXPECT_EQ(value.dtype(), field.dtype);
      EXPECT_TRUE(field.shape.admits(value.shape())) << to_string(value.shape());
      all += field.name + to_string(value.shape());
      all.append(reinterpret_cast<const char*>(value.data()), value.bytes());
    }
    return all;
  }

  TemporaryFolder folder_;
};

using Kinds = ::testing::Types<Images, Clips, ClipsWithTexts, Meshes, Sounds, SoundsWithTexts>;
TYPED_TEST_SUITE(FolderContract, Kinds);

TYPED_TEST(FolderContract, LoadsWhatTheSchemaSaysInSortedOrder) {
  AnyDataset data = TypeParam::open(this->folder_.path());
  ASSERT_EQ(data->size(), this->count);
  std::set<std::string> different;
  std::string before;
  for (std::int64_t i = 0; i < data->size(); ++i) {
    EXPECT_TRUE(different.insert(this->bytes(*data, i, 1, 0)).second) << data->describe(i);
    std::string path = data->describe(i);
    EXPECT_TRUE(fs::exists(path)) << path;
    EXPECT_LT(before, path);
    before = path;
  }
  EXPECT_EQ(different.size(), static_cast<std::size_t>(this->count));
  EXPECT_TRUE(data->left_out().empty());
}

TYPED_TEST(FolderContract, GivesTheSameForTheSameSeedEpochAndIndexOnAnyThread) {
  AnyDataset data = TypeParam::open(this->folder_.path());
  AnyDataset again = TypeParam::open(this->folder_.path());
  std::vector<std::string> expected;
  for (std::int64_t i = 0; i < this->count; ++i) expected.push_back(this->bytes(*data, i, 7, 2));
  Pool pool(4);
  std::atomic<int> different{0};
  parallel_for(pool, 20 * this->count, [&](std::int64_t i) {
    std::int64_t index = i * 5 % this->count;
    const AnyDataset& from = i % 2 == 0 ? data : again;
    if (this->bytes(*from, index, 7, 2) != expected[static_cast<std::size_t>(index)]) ++different;
  });
  EXPECT_EQ(different, 0);
}

TYPED_TEST(FolderContract, RefusesAFolderWithoutSamplesWithOneClearLine) {
  TemporaryFolder empty;
  for (const fs::path& folder : {empty.path(), empty / "missing"}) {
    try {
      (void)TypeParam::open(folder);
      FAIL() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      EXPECT_EQ(error.source(), folder.string());
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    }
  }
}

// Cut, emptied, replaced by noise, by a folder's link, by a pipe, removed: a value that names the
// file, never an exception, and never a sample of something else.
TYPED_TEST(FolderContract, ReportsABrokenFileAsAValueWithItsPath) {
  AnyDataset data = TypeParam::open(this->folder_.path());
  const fs::path victim = data->describe(4);
  const std::string good = read_whole(victim);
  std::string noise = good;
  for (std::size_t i = 0; i < noise.size(); ++i) noise[i] = static_cast<char>(i * 131 + i / 7);
  auto fails = [&](const char* how) {
    Sample sample(data->schema());
    Status status;
    EXPECT_NO_THROW(status = data->load(4, {.index = 4}, sample)) << how;
    EXPECT_FALSE(status.ok()) << how;
    if (status.ok()) return;
    EXPECT_EQ(status.error().source(), victim.string()) << how;
    EXPECT_EQ(status.error().kind(), ErrorKind::data) << how;
    EXPECT_FALSE(status.error().reason().empty()) << how;
    EXPECT_FALSE(status.error().stage().empty()) << how;
  };
  write_file(victim, "");
  fails("empty");
  write_file(victim, good.substr(0, 4));
  fails("cut to 4 bytes");
  write_file(victim, noise);
  fails("noise");
  fs::remove(victim);
  fails("gone");
  fs::create_symlink(victim.filename(), victim);
  fails("a link to itself");
  fs::remove(victim);
  fs::create_directory(victim);
  fails("a folder");
  fs::remove(victim);
  ASSERT_EQ(mkfifo(victim.c_str(), 0600), 0);
  fails("a pipe");
  fs::remove(victim);
  write_file(victim, good);
  EXPECT_FALSE(this->bytes(*data, 4, 1, 0).empty());
}

TYPED_TEST(FolderContract, RunsThroughALoaderAndASplitByName) {
  AnyDataset data = TypeParam::open(this->folder_.path());
  auto [train, valid] = random_split(data, {.valid_fraction = 0.25, .seed = 42});
  EXPECT_EQ(train.size(), 9);
  Loader loader(train, {.batch_size = 4, .shuffle = true, .threads = 2});
  std::multiset<std::int64_t> seen;
  for (const Batch& batch : loader) seen.insert(batch.indices().begin(), batch.indices().end());
  EXPECT_EQ(seen.size(), 9U);
  EXPECT_EQ(std::set<std::int64_t>(seen.begin(), seen.end()).size(), 9U);
  std::set<std::string> names;
  for (std::int64_t i = 0; i < train.size(); ++i) names.insert(train.describe(i));
  for (std::int64_t i = 0; i < valid.size(); ++i) names.insert(valid.describe(i));
  EXPECT_EQ(names.size(), static_cast<std::size_t>(this->count));
}

TYPED_TEST(FolderContract, EstimatesTheCostOfASampleByTheSizeOfItsFile) {
  AnyDataset data = TypeParam::open(this->folder_.path());
  for (std::int64_t i = 0; i < this->count; ++i) {
    EXPECT_EQ(data->cost(i), static_cast<std::int64_t>(fs::file_size(data->describe(i))));
  }
  fs::remove(data->describe(4));
  EXPECT_EQ(data->cost(4), 0);
}

TYPED_TEST(FolderContract, FindsExtensionsInAnyLetterCase) {
  AnyDataset data = TypeParam::open(this->folder_.path());
  fs::path old = data->describe(0), renamed = old;
  std::string extension = old.extension().string();
  for (char& c : extension) c = static_cast<char>(std::toupper(c));
  renamed.replace_extension(extension);
  fs::rename(old, renamed);
  AnyDataset again = TypeParam::open(this->folder_.path());
  EXPECT_EQ(again->size(), this->count);
  EXPECT_FALSE(this->bytes(*again, 0, 1, 0).empty());
}

// With check_files the list knows all sizes: cost() does not look at the file again.
TEST(FolderCost, IsTakenFromAListThatKnowsTheSizes) {
  TemporaryFolder folder;
  write_picture(folder / "a.png", 1);
  const auto before = static_cast<std::int64_t>(fs::file_size(folder / "a.png"));
  const ImageFolder looks(folder.path());
  const ImageFolder knows(folder.path(), {.files = {.check_files = true}});
  fs::resize_file(folder / "a.png", 5);
  EXPECT_EQ(looks.cost(0), 5);
  EXPECT_EQ(knows.cost(0), before);
}

}  // namespace
}  // namespace millrace
