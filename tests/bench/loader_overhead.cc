// The overhead of the loader itself: empty samples in batches of 32.
#include <millrace/pipeline/base/log.h>
#include <millrace/pipeline/loader/loader.h>

#include <chrono>

#include <benchmark/benchmark.h>
#include <sys/resource.h>

namespace {

using namespace millrace;

class Empty : public Dataset {
 public:
  explicit Empty(std::int64_t size) : size_(size) {}
  std::int64_t size() const override { return size_; }
  const Schema& schema() const override { return schema_; }
  Status load(std::int64_t index, const LoadContext&, Sample& sample) const override {
    sample.out("x").as<std::int64_t>()[0] = index;
    return {};
  }

 private:
  std::int64_t size_;
  Schema schema_{{.name = "x", .dtype = DType::int64, .shape = {}}};
};

// Requirement: less than 1 us per sample on 2 cores.
void EmptySamples(benchmark::State& state) {
  constexpr std::int64_t samples = 1'000'000;
  Loader loader(Empty(samples), {.batch_size = 32, .shuffle = true, .threads = 2});
  std::int64_t sum = 0;
  for (auto _ : state) {
    for (const Batch& batch : loader) sum += batch["x"].as<const std::int64_t>()[0];
  }
  benchmark::DoNotOptimize(sum);
  state.SetItemsProcessed(state.iterations() * samples);
  state.counters["us_per_sample"] =
      benchmark::Counter(static_cast<double>(state.iterations() * samples) / 1e6,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(EmptySamples)->Unit(benchmark::kMillisecond)->UseRealTime();

// Requirement: a shuffled loader over 10^9 samples starts in less than 10 ms and 10 MB.
void StartOfABillion(benchmark::State& state) {
  auto memory_kb = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
  };
  auto before = memory_kb();
  for (auto _ : state) {
    Loader loader(Empty(1'000'000'000), {.batch_size = 32, .shuffle = true, .threads = 2});
    benchmark::DoNotOptimize(loader.next());
  }
  state.counters["grown_MB"] = static_cast<double>(memory_kb() - before) / 1024;
}
BENCHMARK(StartOfABillion)->Unit(benchmark::kMillisecond)->UseRealTime();

void Permute(benchmark::State& state) {
  Permutation order(state.range(0), 42, 0);
  std::int64_t p = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(order(p));
    if (++p == state.range(0)) p = 0;
  }
}
BENCHMARK(Permute)->Arg(5)->Arg(1000)->Arg(1'000'000'000);

void ToFloatPlanes(benchmark::State& state) {
  constexpr std::int64_t pixels = 256 * 256;
  std::vector<std::uint8_t> from(pixels * 3, 7);
  std::vector<float> to(pixels * 3);
  ToFloat conversion = ToFloat::unit();
  for (auto _ : state) {
    to_float(conversion, from.data(), pixels, 3, to.data());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * pixels * 3);
}
BENCHMARK(ToFloatPlanes)->Unit(benchmark::kMicrosecond);

}  // namespace

int main(int argc, char** argv) {
  millrace::set_log_level(millrace::LogLevel::warning);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
