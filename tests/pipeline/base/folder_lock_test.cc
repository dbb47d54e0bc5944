#include "tests/reference.h"

#include <millrace/pipeline/base/durable_file.h>
#include <millrace/pipeline/base/error.h>

#include <atomic>
#include <cerrno>
#include <latch>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace millrace {
namespace {

// Each looks at the file that the one before it removes: nobody may hold it together with another.
TEST(FolderLock, IsHeldByOneAtATimeAlsoWhenItsFileIsRemoved) {
  for (auto at_end : {FolderLock::AtEnd::keep_file, FolderLock::AtEnd::remove_file}) {
    TemporaryFolder folder;
    std::atomic<int> inside = 0, most = 0, entered = 0;
    {
      std::vector<std::jthread> threads;
      for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&] {
          for (int round = 0; round < 50; ++round) {
            FolderLock lock(folder / "lock", {}, at_end);
            const int now = ++inside;
            if (now > most) most = now;
            ++entered;
            std::this_thread::yield();
            --inside;
          }
        });
      }
    }
    EXPECT_EQ(most, 1);
    EXPECT_EQ(entered, 200);
    EXPECT_EQ(std::filesystem::exists(folder / "lock"), at_end == FolderLock::AtEnd::keep_file);
  }
}

TEST(FolderLock, SaysOnceThatItMustWait) {
  TemporaryFolder folder;
  std::optional<FolderLock> first;
  int waits = 0;
  first.emplace(folder / "lock", [&] { ++waits; });
  EXPECT_EQ(waits, 0);
  std::latch waiting(1);
  std::jthread second([&] {
    FolderLock lock(folder / "lock", [&] {
      ++waits;
      errno = ENOTTY;  // as after a line that went to a file instead of a terminal
      waiting.count_down();
    });
  });
  waiting.wait();
  first.reset();
  second.join();
  EXPECT_EQ(waits, 1);
}

TEST(FolderLock, NamesTheFileThatCannotBeMade) {
  TemporaryFolder folder;
  try {
    FolderLock lock(folder / "nowhere" / "lock");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("nowhere"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace millrace
