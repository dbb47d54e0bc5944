// Random windows of two seconds at 24 kHz, mono, from audio files through the loader: float32
// [32, 48000]. Prints one JSON line: see bench_measure.h.
#include "tools/bench/bench_files.h"

#include <millrace/decoders/audio/audio.h>

#include <algorithm>
#include <memory>
#include <string>

namespace {

using namespace millrace;

constexpr int rate_hz = 24'000;
constexpr std::int64_t window = 2 * rate_hz;

// The reader keeps its resampling filters from file to file.
BenchFiles::Load window_loader() {
  return [reader = std::make_shared<AudioReader>()](
             const std::string& path, const LoadContext& context, Sample& sample) -> Status {
    Status status = reader->open(path);
    if (!status.ok()) return status;
    const auto total = static_cast<std::int64_t>(reader->info().duration_seconds * rate_hz);
    Random random = context.random("window");
    AudioOptions options{.start = random.below(std::max<std::int64_t>(1, total - window + 1)),
                         .samples = window,
                         .sample_rate_hz = rate_hz,
                         .channels = 1};
    AudioResult result;
    return reader->decode(options, sample.out("sound").as<float>(), result);
  };
}

}  // namespace

int main(int argc, char** argv) {
  CommandLine line("bench_audio", "Measures how fast windows of audio files become batches.",
                   "\nExamples:\n  bench_audio sounds --workers 2 --passes 4\n");
  BenchOptions options;
  return bench_main(line, options, argc, argv, [&] {
    measure_files({.workload = "audio", .note = "sample-accurate seek + swresample"}, options, 32,
                  {{.name = "sound", .dtype = DType::float32, .shape = {window}}}, window_loader);
  });
}
