// A process that is killed at any moment, a disk that is full, several processes at once: what
// comes of it in the end is byte for byte what an undisturbed run makes.
#include "cache_rows.h"
#include "tests/reference.h"

#include <millrace/pipeline/base/error.h>
#include <millrace/pipeline/base/random.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

namespace millrace {
namespace {

namespace fs = std::filesystem;

const Schema ragged{{.name = "tokens", .dtype = DType::int32, .shape = {-1}},
                    {.name = "image", .dtype = DType::uint8, .shape = {64, 64}},
                    text_field("caption")};
const Schema dense{{.name = "image", .dtype = DType::uint8, .shape = {64, 64}}};
constexpr std::int64_t sources = 240;

struct Format {
  std::string name;
  int zstd = 0;
  const Schema& schema() const { return name.ends_with(".arrow") ? ragged : dense; }
  CacheOptions options() const { return {.zstd_level = zstd, .shard_rows = 12}; }
};
void PrintTo(const Format& format, std::ostream* out) {
  *out << format.name << (format.zstd > 0 ? " zstd" : "");
}

// Calls `before` ahead of every shard and of the join.
void make(
    const fs::path& path, const Format& format, const std::function<void()>& before = [] {}) {
  CacheWriter writer(path,
                     {.schema = format.schema(),
                      .sources = sources,
                      .fingerprint = "the list",
                      .options = {{"transform", "none"}}},
                     format.options());
  for (std::int64_t shard : writer.missing()) {
    before();
    write_shard(writer, format.schema(), shard, true);
    writer.join_ahead();
  }
  before();
  writer.join();
}

// Runs `work` in a process of its own.
pid_t in_a_child(const std::function<void()>& work) {
  pid_t child = fork();
  if (child != 0) return child;
  int status = 1;
  try {
    work();
    status = 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "child: %s\n", error.what());
  }
  _exit(status);
}

bool ended_well(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

std::vector<std::string> files_of(const fs::path& cache) {
  std::vector<std::string> files;
  for (const char* suffix : {"", ".json", ".sources.jsonl"}) {
    files.push_back(bytes_of_file(cache.string() + suffix));
  }
  return files;
}

class Faults : public testing::TestWithParam<Format> {
 protected:
  void SetUp() override {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "the thread sanitizer does not let a child of fork() start threads";
#endif
  }

  TemporaryFolder folder_;
};

// Makes the cache in a child and kills it `delay` after its n-th shard (0: from the start). One
// that is quicker waits to be killed, so that how many die does not depend on the machine.
void killed_after(std::int64_t shards, std::chrono::nanoseconds delay, const fs::path& path,
                  const Format& format) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  pid_t child = in_a_child([&] {
    std::int64_t begun = 0;
    auto tell = [&] {
      if (write(ends[1], "s", 1) != 1) throw Error("nobody listens");
    };
    make(path, format, [&] {
      if (begun++ == shards) tell();
    });
    if (begun <= shards) tell();
    pause();
  });
  close(ends[1]);
  char step = 0;
  EXPECT_EQ(read(ends[0], &step, 1), 1) << "the child failed";
  close(ends[0]);
  std::this_thread::sleep_for(delay);
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
}

TEST_P(Faults, KilledAtRandomMomentsItEndsAsIfNothingHadBeen) {
  fs::path whole = folder_ / ("whole-" + GetParam().name);
  ASSERT_TRUE(ended_well(in_a_child([&] { make(whole, GetParam()); })));
  auto expected = files_of(whole);
  Random random(5, 0, 0, GetParam().name);
  fs::path path = folder_ / GetParam().name;
  for (int round = 0; round < 4; ++round) {
    for (std::uint64_t kills = 1 + random.below(5); kills > 0; --kills) {
      // From less than a row takes to more than the join does, evenly in the logarithm.
      std::chrono::nanoseconds delay((1000 + random.below(1000)) << random.below(15));
      // One in five dies in the join: no shard comes after the last.
      killed_after(static_cast<std::int64_t>(random.below(sources / 12 * 5 / 4)), delay, path,
                   GetParam());
      // Whatever has the final name is whole.
      if (!fs::exists(path)) continue;
      ASSERT_TRUE(ended_well(in_a_child([&] {
        if (!verify_cache(path).problems.empty()) throw Error("the cache is damaged");
      })));
    }
    ASSERT_TRUE(ended_well(in_a_child([&] { make(path, GetParam()); })));
    ASSERT_EQ(files_of(path), expected);
    ASSERT_FALSE(fs::exists(path.string() + ".parts"));
    for (const char* suffix : {"", ".json", ".sources.jsonl"}) fs::remove(path.string() + suffix);
  }
}

TEST_P(Faults, ThreeProcessesOfWhichOneIsKilled) {
  fs::path whole = folder_ / ("whole-" + GetParam().name), path = folder_ / GetParam().name;
  make(whole, GetParam());
  auto rank = [&](std::int64_t number) {
    return in_a_child([&, number] {
      CacheWriter writer(path,
                         {.schema = GetParam().schema(),
                          .sources = sources,
                          .fingerprint = "the list",
                          .options = {{"transform", "none"}}},
                         GetParam().options());
      for (std::int64_t shard : writer.missing()) {
        if (shard % 3 == number) write_shard(writer, GetParam().schema(), shard, true);
      }
    });
  };
  pid_t ranks[] = {rank(0), rank(1), rank(2)};
  std::this_thread::sleep_for(std::chrono::milliseconds(3));
  kill(ranks[1], SIGKILL);
  waitpid(ranks[1], nullptr, 0);
  EXPECT_TRUE(ended_well(ranks[0]));
  EXPECT_TRUE(ended_well(ranks[2]));
  // Two others find what is missing, do it both at once, and join both at once.
  pid_t others[] = {in_a_child([&] { make(path, GetParam()); }),
                    in_a_child([&] { make(path, GetParam()); })};
  ended_well(others[0]);
  ended_well(others[1]);
  make(path, GetParam());
  EXPECT_EQ(files_of(path), files_of(whole));
}

TEST_P(Faults, AFullDiskKeepsWhatIsFinished) {
  fs::path whole = folder_ / ("whole-" + GetParam().name), disk = folder_ / "disk";
  make(whole, GetParam());
  fs::create_directory(disk);
  if (mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=600k") != 0) {
    GTEST_SKIP() << "mounting a small disk needs root";
  }
  fs::path path = disk / GetParam().name;
  std::string message;
  std::size_t missing = 0;
  try {
    // Rows of fixed size are refused before anything is written; here something else is in the way.
    std::ofstream(disk / "ballast") << std::string(100'000, 'x');
    make(path, GetParam());
  } catch (const Error& error) {
    message = error.what();
  }
  bool predicted = GetParam().schema().size() == 1;
  if (predicted) {
    EXPECT_NE(message.find("not enough room"), std::string::npos) << message;
  } else if (GetParam().zstd == 0) {
    EXPECT_NE(message.find("No space left on device"), std::string::npos) << message;
    EXPECT_NE(message.find("MB free"), std::string::npos) << message;
    CacheWriter writer(path,
                       {.schema = GetParam().schema(),
                        .sources = sources,
                        .fingerprint = "the list",
                        .options = {{"transform", "none"}}},
                       GetParam().options());
    missing = writer.missing().size();
    EXPECT_GT(missing, 0U);
    EXPECT_LT(missing, 20U);
  }
  EXPECT_EQ(mount("tmpfs", disk.c_str(), "tmpfs", MS_REMOUNT, "size=16m"), 0);
  make(path, GetParam());
  EXPECT_EQ(files_of(path), files_of(whole));
  EXPECT_EQ(umount(disk.c_str()), 0);
}

INSTANTIATE_TEST_SUITE_P(Formats, Faults,
                         testing::Values(Format{"x.npy"}, Format{"x.bin"}, Format{"x.arrow"},
                                         Format{"x.arrow", 3}));

}  // namespace
}  // namespace millrace
