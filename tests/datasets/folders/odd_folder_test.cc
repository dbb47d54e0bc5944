// A folder as the world has them: a tenth of the files broken, and everything odd that a file
// system allows. The run ends well, the ledger lists each once with its reason, and the good ones
// are all there.
#include "tests/datasets/media_samples.h"
#include "tests/reference.h"

#include <millrace/datasets/folders/audio_folder.h>
#include <millrace/datasets/folders/gif_text_folder.h>
#include <millrace/datasets/folders/image_folder.h>
#include <millrace/datasets/folders/mesh_folder.h>
#include <millrace/datasets/folders/video_folder.h>
#include <millrace/datasets/listing/printable.h>
#include <millrace/pipeline/loader/loader.h>

#include <map>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace millrace {
namespace {

namespace fs = std::filesystem;

struct Kind {
  std::string name, extension;
  void (*write)(const fs::path&, int);
  AnyDataset (*open)(const fs::path&);
  bool texts = false;
};

const Kind kinds[] = {
    {"images", ".png", [](const fs::path& p, int i) { write_picture(p, i); },
     [](const fs::path& f) -> AnyDataset { return ImageFolder(f, {.size = 16}); }},
    {"clips", ".gif", [](const fs::path& p, int i) { write_clip(p, i, 3); },
     [](const fs::path& f) -> AnyDataset { return VideoFolder(f, {.frames = 2, .size = 16}); }},
    {"captioned", ".gif", [](const fs::path& p, int i) { write_clip(p, i, 3); },
     [](const fs::path& f) -> AnyDataset { return GifTextFolder(f, {.frames = 2, .size = 16}); },
     true},
    {"meshes", ".obj", [](const fs::path& p, int i) { write_mesh(p, i); },
     [](const fs::path& f) -> AnyDataset { return MeshFolder(f); }},
    {"sounds", ".wav", [](const fs::path& p, int i) { write_sound(p, i, 400); },
     [](const fs::path& f) -> AnyDataset { return AudioFolder(f, {.samples = 300}); }},
};

class OddFolder : public ::testing::TestWithParam<Kind> {
 protected:
  // Every file that is good, and everything that must be in the ledger, as it is shown there.
  std::set<std::string> good_, bad_;

  void add_good(const fs::path& path, int i) {
    GetParam().write(path, i);
    if (GetParam().texts) write_file(text(path), "text " + std::to_string(i));
    good_.insert(printable(path));
  }
  void add_bad(const fs::path& path, const std::string& content) {
    write_file(path, content);
    if (GetParam().texts) write_file(text(path), "text");
    bad_.insert(printable(path));
  }
  static fs::path text(fs::path path) { return path.replace_extension(".txt"); }

  void fill(const fs::path& folder) {
    const std::string& ext = GetParam().extension;
    for (int i = 0; i < 40; ++i) {
      add_good(folder / ("d" + std::to_string(i % 4)) / (std::to_string(i) + ext), i);
    }
    add_good(folder / ("new\nline" + ext), 41);
    add_good(folder / ("latin\xe9" + ext), 42);
    add_good(folder / ("quote\"back\\slash" + ext), 43);
    const std::string whole = read_whole(folder / "d0" / ("0" + ext));
    std::string noise = whole;
    for (std::size_t i = 0; i < noise.size(); ++i) noise[i] = static_cast<char>(i * 197 + 13);
    add_bad(folder / ("cut" + ext), whole.substr(0, 5));
    add_bad(folder / ("noise" + ext), noise);
    add_bad(folder / ("empty" + ext), "");
    add_bad(folder / ("bad\nnewline" + ext), noise);
    add_bad(folder / ("bad\xff\xfe" + ext), noise);
    add_bad(folder / ("bad\xff" + ext), noise);
    fs::create_symlink("myself" + ext, folder / ("myself" + ext));
    bad_.insert((folder / ("myself" + ext)).string());
    if (GetParam().texts) write_file(folder / "myself.txt", "text");
    // Not samples, but told.
    fs::create_directory(folder / ("x" + ext));
    bad_.insert((folder / ("x" + ext)).string());
    fs::create_directory_symlink("..", folder / "d1/up");
    bad_.insert((folder / "d1/up").string());
  }
};

TEST_P(OddFolder, EndsWellAndIsListedOnce) {
  TemporaryFolder folder, results;
  fill(folder.path());
  AnyDataset data = GetParam().open(folder.path());
  fs::path ledger = results / "errors.jsonl";
  Loader loader(data, {.batch_size = 8,
                       .shuffle = true,
                       .threads = 2,
                       .errors = {.max_fraction = 0.3, .ledger = ledger}});
  std::set<std::string> seen;
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (const Batch& batch : loader) {
      for (std::int64_t index : batch.indices()) seen.insert(data->describe(index));
    }
  }
  EXPECT_EQ(seen, good_);
  EXPECT_EQ(loader.stats().bad_samples, 7);
  std::map<std::string, int> listed;
  std::ifstream in(ledger);
  for (std::string line; std::getline(in, line);) {
    nlohmann::json record = nlohmann::json::parse(line);  // throws if it is not JSON
    ++listed[record.at("source")];
    EXPECT_FALSE(record.at("reason").get<std::string>().empty()) << line;
    EXPECT_FALSE(record.at("stage").get<std::string>().empty()) << line;
  }
  for (const std::string& source : bad_) EXPECT_EQ(listed[source], 1) << source;
  EXPECT_EQ(listed.size(), bad_.size());
}

// As a user who is not root, for whom there are files that cannot be read.
TEST_P(OddFolder, ListsFilesThatCannotBeRead) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer does not let a child of fork() start threads";
#endif
  TemporaryFolder folder;
  fs::permissions(folder.path(), fs::perms::all);
  fill(folder.path());
  fs::path locked = folder / ("locked" + GetParam().extension);
  add_good(locked, 3);
  fs::permissions(locked, fs::perms::none);
  pid_t child = fork();
  if (child == 0) {
    if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) _exit(3);
    AnyDataset data = GetParam().open(folder.path());
    Loader loader(data, {.batch_size = 8, .threads = 2, .errors = {.max_fraction = 0.3}});
    std::int64_t rows = 0;
    for (const Batch& batch : loader) rows += batch.size();
    int told = 0;
    for (const BadSample& bad : loader.ledger().records()) {
      told +=
          bad.source == locked.string() && bad.reason.find("Permission denied") != std::string::npos
              ? 1
              : 0;
    }
    _exit(told == 1 && rows == data->size() ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

INSTANTIATE_TEST_SUITE_P(Kinds, OddFolder, ::testing::ValuesIn(kinds),
                         [](const auto& info) { return info.param.name; });

TEST(GifTextFolder, TellsWhatHasNoPair) {
  TemporaryFolder folder;
  write_clip(folder / "a.gif", 1);
  write_file(folder / "a.txt", "\xEF\xBB\xBF a caption\r\n");
  write_clip(folder / "alone.gif", 1);
  write_file(folder / "lonely.TXT", "text");
  write_clip(folder / "sub/b.GIF", 1);
  write_file(folder / "sub/b.Txt", "");
  write_file(folder / "b.txt", "not b's: another folder");
  GifTextFolder gifs(folder.path(), {.frames = 2, .size = 8});
  ASSERT_EQ(gifs.size(), 2);
  std::set<std::string> left;
  for (const LeftOut& entry : gifs.left_out()) left.insert(fs::path(entry.source).filename());
  EXPECT_EQ(left, (std::set<std::string>{"alone.gif", "lonely.TXT", "b.txt"}));
  Sample sample(gifs.schema());
  ASSERT_TRUE(gifs.load(0, {}, sample).ok());
  EXPECT_EQ(sample.text("caption"), " a caption");
  ASSERT_TRUE(gifs.load(1, {.index = 1}, sample).ok());
  EXPECT_EQ(sample.text("caption"), "");
  EXPECT_EQ(gifs.text_path(1), folder / "sub/b.Txt");
}

}  // namespace
}  // namespace millrace
