#include "tests/reference.h"

#include <millrace/datasets/listing/file_bytes.h>
#include <millrace/datasets/listing/file_list.h>
#include <millrace/datasets/listing/printable.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <set>
#include <thread>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace millrace {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& path, const std::string& content = "x") {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << content;
}

std::vector<std::string> names(const FileList& files) {
  std::vector<std::string> all;
  for (std::int64_t i = 0; i < files.size(); ++i) all.push_back(files.relative(i));
  return all;
}

bool says(const std::vector<LeftOut>& left_out, const std::string& name, const std::string& why) {
  return std::ranges::any_of(left_out, [&](const LeftOut& entry) {
    return entry.source.ends_with(name) && entry.reason.find(why) != std::string::npos;
  });
}

TEST(FileList, IsSortedByTheBytesOfTheWholePath) {
  TemporaryFolder folder;
  std::vector<std::string> expected = {"B.png",   "a-b/c.png",    "a.png",
                                       "a/b.png", "a/b/c.png",    "a0/c.png",
                                       "z\n.png", "\xc3\xa9.PNG", "\xff.png"};
  for (const std::string& name : expected) write(folder / name);
  for (int i = 0; i < 300; ++i) {
    expected.push_back("many/commonprefix" + std::to_string(i * 7919 % 1000) + ".JpG");
    write(folder / expected.back());
  }
  write(folder / "a/b.txt");
  write(folder / ".png");
  std::ranges::sort(expected, [](const std::string& a, const std::string& b) {
    return std::ranges::lexicographical_compare(
        a, b, {}, [](char c) { return c & 255; }, [](char c) { return c & 255; });
  });
  EXPECT_EQ(names(FileList(folder.path(), {.extensions = {"png", ".JPG"}})), expected);
}

TEST(FileList, TellsSizesTimesAndPaths) {
  TemporaryFolder folder;
  write(folder / "sub/a.png", "12345");
  FileList files(folder.path(), {.extensions = {"png"}});
  ASSERT_EQ(files.size(), 1);
  EXPECT_EQ(files.bytes(0), 5);
  EXPECT_EQ(files.path(0), folder / "sub/a.png");
  EXPECT_EQ(files.name(0), "a.png");
  struct stat about {};
  ASSERT_EQ(stat(files.path(0).c_str(), &about), 0);
  EXPECT_EQ(files.modified_ns(0), about.st_mtim.tv_sec * 1'000'000'000 + about.st_mtim.tv_nsec);
}

TEST(FileList, ListsEachFolderOnceWhateverLinksSay) {
  TemporaryFolder folder, elsewhere;
  write(folder / "real/a.png");
  write(elsewhere / "deep/b.png");
  fs::create_directory_symlink("..", folder / "real/up");           // a loop
  fs::create_directory_symlink(".", folder / "here");               // another
  fs::create_directory_symlink("real", folder / "also_real");       // a second path
  fs::create_directory_symlink(elsewhere.path(), folder / "out");   // outside: followed
  fs::create_directory_symlink(elsewhere.path(), folder / "out2");  // again
  fs::create_directory_symlink(folder.path(), elsewhere / "back");  // and back
  fs::create_symlink("itself.png", folder / "itself.png");
  fs::create_symlink("nowhere", folder / "broken.png");
  FileList files(folder.path(), {.extensions = {"png"}});
  // Broken links are listed: loading them tells what is wrong.
  EXPECT_EQ(names(files),
            (std::vector<std::string>{"broken.png", "itself.png", "out/deep/b.png", "real/a.png"}));
  EXPECT_EQ(files.bytes(0), -1);
  for (const char* link : {"real/up", "here", "also_real", "out2", "out/back"}) {
    EXPECT_TRUE(says(files.left_out(), link, "listed already")) << link;
  }
  EXPECT_EQ(files.left_out().size(), 5U);
}

TEST(FileList, ReportsFoldersThatAreNamedLikeFiles) {
  TemporaryFolder folder;
  write(folder / "x.png/inside.png");
  fs::create_directory(folder / "y.png");
  FileList files(folder.path(), {.extensions = {"png"}});
  EXPECT_EQ(names(files), std::vector<std::string>{"x.png/inside.png"});
  EXPECT_TRUE(says(files.left_out(), "/x.png", "a folder"));
  EXPECT_TRUE(says(files.left_out(), "/y.png", "a folder"));
}

TEST(FileList, RefusesWhatIsNoFolder) {
  TemporaryFolder folder;
  write(folder / "a.png");
  for (const auto& [path, why] : {std::pair{folder / "missing", "does not exist"},
                                  std::pair{folder / "a.png", "not a folder"}}) {
    try {
      FileList files(path);
      FAIL() << path;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(why), std::string::npos) << error.what();
      EXPECT_EQ(error.kind(), ErrorKind::usage);
    }
  }
}

// Runs `code` in a child process that is not root, since root reads everything.
template <typename Code>
void as_nobody(Code code) {
  pid_t child = fork();
  if (child == 0) {
    if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) _exit(3);
    _exit(code() ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(FileList, ReportsFoldersThatCannotBeRead) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer does not let a child of fork() start threads";
#endif
  TemporaryFolder folder;
  fs::permissions(folder.path(), fs::perms::all);
  write(folder / "good.png");
  write(folder / "locked/a.png");
  fs::permissions(folder / "locked", fs::perms::none);
  as_nobody([&] {
    FileList files(folder.path(), {.extensions = {"png"}, .pool = std::make_shared<Pool>(2)});
    return names(files) == std::vector<std::string>{"good.png"} &&
           says(files.left_out(), "/locked", "cannot be read (Permission denied)");
  });
  fs::permissions(folder / "locked", fs::perms::all);
}

class FileIndex : public ::testing::Test {
 protected:
  FileIndex() {
    for (int i = 0; i < 200; ++i) {
      write(folder_ / ("d" + std::to_string(i % 7) + "/" + std::to_string(i) + ".png"));
    }
    fs::create_directory(folder_ / "d1/x.png");
  }
  FileList list(bool check_files = false) const {
    return FileList(folder_.path(), {.extensions = {"png"},
                                     .index = FileListOptions::Index::always,
                                     .index_path = index_,
                                     .check_files = check_files});
  }
  TemporaryFolder folder_, beside_;
  fs::path index_ = beside_ / "index";
};

TEST_F(FileIndex, GivesTheSameListAgain) {
  FileList first = list();
  EXPECT_FALSE(first.from_index());
  FileList second = list();
  EXPECT_TRUE(second.from_index());
  EXPECT_EQ(names(first), names(second));
  EXPECT_TRUE(says(second.left_out(), "/d1/x.png", "a folder"));
  for (std::int64_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(first.bytes(i), second.bytes(i));
    EXPECT_EQ(first.modified_ns(i), second.modified_ns(i));
  }
}

TEST_F(FileIndex, NoticesFilesThatCameWentOrWereRenamed) {
  list();
  write(folder_ / "d3/new.png");
  EXPECT_FALSE(list().from_index());
  EXPECT_EQ(list().size(), 201);
  fs::remove(folder_ / "d3/new.png");
  EXPECT_EQ(list().size(), 200);
  fs::rename(folder_ / "d0/0.png", folder_ / "d0/00.png");
  EXPECT_EQ(names(list()), names(FileList(folder_.path(), {.extensions = {"png"}})));
  fs::create_directories(folder_ / "new/folder");
  EXPECT_FALSE(list().from_index());
  write(folder_ / "new/folder/a.png");
  EXPECT_EQ(list().size(), 201);
}

// Many changes right after a listing, within one step of the file system's clock.
TEST_F(FileIndex, IsNotFooledByQuickChanges) {
  for (int i = 0; i < 40; ++i) {
    write(folder_ / "d2" / ("quick" + std::to_string(i) + ".png"));
    ASSERT_EQ(list().size(), 201 + i);
  }
}

TEST_F(FileIndex, NoticesFilesThatChangedInPlace) {
  list(true);
  EXPECT_EQ(list(true).changed_files(), 0);
  std::ofstream(folder_ / "d0/0.png", std::ios::app) << "more";
  // What is asked for is looked up, whatever the index says.
  FileList quick = list();
  EXPECT_TRUE(quick.from_index());
  FileList checked = list(true);
  EXPECT_TRUE(checked.from_index());
  EXPECT_EQ(checked.changed_files(), 1);
  EXPECT_EQ(checked.bytes(0), 5);
  EXPECT_EQ(checked.modified_ns(0),
            FileList(folder_.path(), {.extensions = {"png"}}).modified_ns(0));
  EXPECT_EQ(list(true).changed_files(), 0);  // remembered
}

TEST_F(FileIndex, NeverGivesAnOldSize) {
  list(true);
  std::ofstream(folder_ / "d0/0.png", std::ios::app) << "more";
  FileList files = list();
  EXPECT_TRUE(files.from_index());
  EXPECT_EQ(files.bytes(0), 5);
}

TEST_F(FileIndex, IsNotUsedForOtherExtensions) {
  list();
  FileList other(folder_.path(), {.extensions = {"jpg"}, .index_path = index_});
  EXPECT_FALSE(other.from_index());
  EXPECT_EQ(other.size(), 0);
}

TEST_F(FileIndex, IsIgnoredIfDamaged) {
  auto expected = names(list());
  std::string good;
  {
    std::ostringstream all;
    all << std::ifstream(index_, std::ios::binary).rdbuf();
    good = all.str();
  }
  ASSERT_GT(good.size(), 1000U);
  for (std::size_t i = 0; i < 120; ++i) {
    std::string bad = good;
    if (i % 2 == 0) {
      bad.resize(good.size() * i / 120);
    } else {
      bad[good.size() * i / 120] ^= static_cast<char>(1 << (i % 8));
    }
    std::ofstream(index_, std::ios::binary) << bad;
    FileList files = list();
    EXPECT_FALSE(files.from_index()) << i;
    ASSERT_EQ(names(files), expected);
  }
}

TEST_F(FileIndex, LivesBesideTheFolderUnlessTold) {
  TemporaryFolder parent;
  fs::copy(folder_.path(), parent / "photos", fs::copy_options::recursive);
  FileListOptions options{.extensions = {"png"}, .index = FileListOptions::Index::always};
  EXPECT_FALSE(FileList(parent / "photos", options).from_index());
  EXPECT_TRUE(FileList(parent / "photos", options).from_index());
  options.index = FileListOptions::Index::never;
  EXPECT_FALSE(FileList(parent / "photos", options).from_index());
  int hidden = 0;
  for (const auto& entry : fs::directory_iterator(parent.path())) {
    hidden += entry.path().filename().string().starts_with(".photos.") ? 1 : 0;
  }
  EXPECT_EQ(hidden, 1);
}

TEST(FileList, IsSmall) {
  TemporaryFolder folder;
  for (int i = 0; i < 3000; ++i) write(folder / ("image" + std::to_string(10'000 + i) + ".png"));
  FileList files(folder.path());
  EXPECT_LT(files.memory_bytes() / files.size(), 150);
}

TEST(Printable, KeepsUtf8AndQuotesTheRestWithoutConfusingTwoNames) {
  EXPECT_EQ(printable(std::string_view("a/é.png")), "a/é.png");
  EXPECT_EQ(printable(std::string_view("a\xff.png")), "$'a\\xff.png'");
  EXPECT_EQ(printable(std::string_view("é\n\xff'\\")), "$'é\\x0a\\xff\\'\\\\'");
  std::set<std::string> shown;
  std::vector<std::string> names = {"a\xff", "a\\xff", "$'a\\xff'", "a\xfe", "a\\\xff"};
  for (const std::string& name : names) shown.insert(printable(std::string_view(name)));
  EXPECT_EQ(shown.size(), names.size());
}

TEST(FileBytes, RefusesWhatIsNoFileWithoutBlocking) {
  TemporaryFolder folder;
  write(folder / "empty", "");
  write(folder / "good", "abc");
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  fs::create_symlink("loop", folder / "loop");
  FileBytes file;
  for (const auto& [name, why] :
       {std::pair{"empty", "empty"}, std::pair{"pipe", "not a regular file"},
        std::pair{"loop", "Too many levels"}, std::pair{".", "a folder"},
        std::pair{"missing", "No such file"}}) {
    Status status = file.read(folder / name);
    ASSERT_FALSE(status.ok()) << name;
    EXPECT_NE(status.error().reason().find(why), std::string::npos) << status.error().what();
  }
  ASSERT_TRUE(file.read(folder / "good").ok());
  EXPECT_EQ(file.bytes().size(), 3U);
  EXPECT_FALSE(file.read(folder / "good", 2).ok());
}

}  // namespace
}  // namespace millrace
