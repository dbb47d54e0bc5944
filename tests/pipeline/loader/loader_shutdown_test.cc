// A loader can be left at any moment: no thread, no leak, no wait.
#include "tests/pipeline/numbers.h"

#include <millrace/pipeline/loader/loader.h>

#include <future>
#include <random>

#include <dirent.h>
#include <gtest/gtest.h>

namespace millrace {
namespace {

using std::chrono::milliseconds;

int threads_now() {
  int count = 0;
  DIR* tasks = opendir("/proc/self/task");
  while (dirent* entry = readdir(tasks)) count += entry->d_name[0] != '.' ? 1 : 0;
  closedir(tasks);
  return count;
}

// The thread sanitizer starts a thread of its own together with the first of ours.
int threads_of_this_process() {
  std::thread([] {}).join();
  return threads_now();
}

// A thread that was joined may be listed for a moment longer.
bool threads_come_down_to(int count) {
  for (int i = 0; i < 1000 && threads_now() > count; ++i) {
    std::this_thread::sleep_for(milliseconds(1));
  }
  return threads_now() == count;
}

std::shared_ptr<Numbers> slow_numbers(milliseconds each) {
  auto data = std::make_shared<Numbers>(1000);
  data->before_load = [each](std::int64_t, const LoadContext&) -> Status {
    std::this_thread::sleep_for(each);
    return {};
  };
  return data;
}

TEST(LoaderShutdown, InMidEpochTakesNoLongerThanTheSamplesBeingLoaded) {
  int before = threads_of_this_process();
  auto started = std::chrono::steady_clock::now();
  {
    Loader loader(slow_numbers(milliseconds(30)), {.batch_size = 16, .prefetch = 8, .threads = 4});
    loader.next();
    started = std::chrono::steady_clock::now();
  }
  EXPECT_LT(std::chrono::steady_clock::now() - started, milliseconds(500));
  EXPECT_TRUE(threads_come_down_to(before));
}

TEST(LoaderShutdown, ALongLoadThatLooksAtCancelledIsLeftAtOnce) {
  auto data = std::make_shared<Numbers>(100);
  data->before_load = [](std::int64_t, const LoadContext& context) -> Status {
    for (int i = 0; i < 60'000 && !context.cancelled(); ++i) {
      std::this_thread::sleep_for(milliseconds(1));
    }
    return {};
  };
  auto started = std::chrono::steady_clock::now();
  {
    Loader loader(data, {.batch_size = 4, .threads = 2, .stall_timeout = milliseconds(50)});
    EXPECT_THROW(loader.next(), Error);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - started, std::chrono::seconds(1));
}

TEST(LoaderShutdown, CancellingFromAnotherThreadEndsTheWait) {
  auto data = std::make_shared<Numbers>(100);
  data->before_load = [](std::int64_t, const LoadContext& context) -> Status {
    while (!context.cancelled()) std::this_thread::sleep_for(milliseconds(1));
    return {};
  };
  Loader loader(data, {.batch_size = 4, .threads = 2});
  auto canceller = std::async(std::launch::async, [&] {
    std::this_thread::sleep_for(milliseconds(50));
    loader.cancel();
  });
  try {
    loader.next();
    FAIL() << "next() returned";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::cancelled);
  }
  EXPECT_THROW(loader.next(), Error) << "it stays cancelled";
}

TEST(LoaderShutdown, AfterAnErrorInADataset) {
  CapturedLog log;
  auto data = slow_numbers(milliseconds(1));
  auto slow = data->before_load;
  data->before_load = [slow](std::int64_t index, const LoadContext& context) -> Status {
    if (index == 21) throw std::runtime_error("boom");
    return slow(index, context);
  };
  Loader loader(data, {.batch_size = 4, .threads = 4, .errors = {.fail = true}});
  EXPECT_EQ(message_of([&] {
              while (loader.next()) {
              }
            }),
            "sample 21: boom");
}

TEST(LoaderShutdown, NeverStartedOrMovedFrom) {
  { Loader loader(Numbers(10), {.batch_size = 2, .threads = 2}); }
  Loader a(Numbers(10), {.batch_size = 2, .threads = 2});
  a.next();
  Loader b = std::move(a);
  EXPECT_EQ(numbers_in(*b.next()), (std::vector<std::int64_t>{2, 3}));
  b = Loader(Numbers(6), {.batch_size = 3, .threads = 1});
  EXPECT_EQ(numbers_in(*b.next()), (std::vector<std::int64_t>{0, 1, 2}));
}

// Must show: 200 random starts, cancels and destructions: no hang, no thread left, and (under the
// sanitizers) no leak and no race.
TEST(LoaderShutdown, At200RandomMoments) {
  CapturedLog log;
  std::mt19937 engine(1234);
  auto pool = std::make_shared<Pool>(2);
  int before = threads_of_this_process();
  auto started = std::chrono::steady_clock::now();
  for (int round = 0; round < 200; ++round) {
    auto data = std::make_shared<Numbers>(static_cast<std::int64_t>(1 + engine() % 200));
    int delay_us = static_cast<int>(engine() % 200), bad = static_cast<int>(engine() % 30);
    data->before_load = [=](std::int64_t index, const LoadContext&) -> Status {
      if (delay_us > 100) std::this_thread::sleep_for(std::chrono::microseconds(delay_us));
      if (bad == 1 && index % 3 == 0) return Error("bad");
      if (bad == 2 && index == 5) throw std::runtime_error("thrown");
      return {};
    };
    LoaderOptions options{.batch_size = static_cast<std::int64_t>(1 + engine() % 20),
                          .shuffle = engine() % 2 == 0,
                          .prefetch = static_cast<int>(1 + engine() % 6)};
    if (engine() % 2 == 0) {
      options.pool = pool;
    } else {
      options.threads = static_cast<int>(1 + engine() % 4);
    }
    options.errors.max_fraction = 1;
    Loader loader(data, options);
    std::optional<Batch> kept;
    std::future<void> canceller;
    if (engine() % 3 == 0) {
      auto wait = std::chrono::microseconds(engine() % 2000);
      canceller = std::async(std::launch::async, [&loader, wait] {
        std::this_thread::sleep_for(wait);
        loader.cancel();
      });
    }
    try {
      for (unsigned i = engine() % 12; i > 0; --i) {
        if (engine() % 10 == 0) loader.seek({.seed = 1, .epoch = 3, .next = 0});
        kept = loader.next();
      }
    } catch (const Error&) {
    }
    if (canceller.valid()) canceller.get();
    if (engine() % 2 == 0) kept.reset();
  }
  EXPECT_TRUE(threads_come_down_to(before));
  EXPECT_LT(std::chrono::steady_clock::now() - started, std::chrono::seconds(60));
}

}  // namespace
}  // namespace millrace
