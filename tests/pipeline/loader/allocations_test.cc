// Counts every allocation of the process: once warm, the loader makes none per sample. A program
// of its own, since it replaces operator new.
#include <millrace/pipeline/base/log.h>
#include <millrace/pipeline/loader/loader.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <new>

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace {
std::atomic<std::int64_t> allocations{0};
}

// Not inlined: the compiler would see malloc's memory go to delete and warn of a mismatch.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace millrace {
namespace {

// A fixed field, a ragged one and a text, so that all ways of a sample are warm.
class Plain : public Dataset {
 public:
  explicit Plain(std::int64_t size) : size_(size) {}
  std::int64_t size() const override { return size_; }
  const Schema& schema() const override { return schema_; }
  Status load(std::int64_t index, const LoadContext&, Sample& sample) const override {
    sample.out("image").as<std::uint8_t>()[0] = static_cast<std::uint8_t>(index);
    sample.resize("tokens", {1 + index % 7}).as<std::int32_t>()[0] = 1;
    sample.set_text("caption", "a picture");
    return {};
  }

 private:
  std::int64_t size_;
  Schema schema_{{.name = "image", .dtype = DType::uint8, .shape = {8, 8, 3}},
                 {.name = "tokens", .dtype = DType::int32, .shape = {-1}},
                 text_field("caption")};
};

double allocations_per_batch(std::int64_t batch_size) {
  Loader loader(Plain(batch_size * 400), {.batch_size = batch_size,
                                          .shuffle = true,
                                          .threads = 2,
                                          .collate = {{"tokens", Collate::pad_to({8})}},
                                          .to_float = {{"image", ToFloat::unit()}}});
  for (int i = 0; i < 200; ++i) loader.next();  // warm
  std::int64_t before = allocations;
  for (int i = 0; i < 200; ++i) loader.next();
  return static_cast<double>(allocations - before) / 200;
}

TEST(Allocations, AreNoneForASampleOnceWarm) {
  set_log_level(LogLevel::warning);
  double small = allocations_per_batch(8), large = allocations_per_batch(128);
  RecordProperty("per_batch_of_8", std::to_string(small));
  RecordProperty("per_batch_of_128", std::to_string(large));
  std::cout << "allocations per batch: " << small << " with 8 rows, " << large << " with 128\n";
  // 120 samples more make no difference: what is left belongs to the batch.
  EXPECT_LT(large - small, 4);
  EXPECT_LT(small, 40);
}

TEST(Allocations, ABillionShuffledSamplesStartAtOnceAndInLittleMemory) {
  set_log_level(LogLevel::warning);
  rusage usage{};
  {
    Loader warm(Plain(100), {.batch_size = 32, .shuffle = true, .threads = 2});
    warm.next();
  }
  getrusage(RUSAGE_SELF, &usage);
  auto before_kb = usage.ru_maxrss;
  auto started = std::chrono::steady_clock::now();
  Loader loader(Plain(1'000'000'000), {.batch_size = 32, .shuffle = true, .threads = 2});
  EXPECT_TRUE(loader.next());
  auto elapsed =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - started);
  getrusage(RUSAGE_SELF, &usage);
  std::cout << "10^9 samples: first batch after " << elapsed.count() << " ms, memory grew by "
            << (usage.ru_maxrss - before_kb) << " kB\n";
  EXPECT_LT(usage.ru_maxrss - before_kb, 10'000);
  EXPECT_LT(elapsed.count(), 1000) << "listing them would take far longer";
}

}  // namespace
}  // namespace millrace
