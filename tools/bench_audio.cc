// Random windows of two seconds at 24 kHz, mono, from the audio files of a folder, through the
// loader: float32 [32, 48000]. Prints one JSON line.
#include "bench_measure.h"

#include <millrace/decoders/audio.h>
#include <millrace/pipeline/loader.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace {

using namespace millrace;

constexpr int rate_hz = 24'000;
constexpr std::int64_t window = 2 * rate_hz;

// One reader per worker, so that resampling filters are reused from file to file.
class Windows : public Dataset {
 public:
  Windows(std::vector<std::filesystem::path> paths, int workers)
      : paths_(std::move(paths)), readers_(static_cast<std::size_t>(workers)) {}

  std::int64_t size() const override { return std::ssize(paths_); }
  const Schema& schema() const override { return schema_; }
  std::string describe(std::int64_t index) const override {
    return paths_[static_cast<std::size_t>(index)].string();
  }
  Status load(std::int64_t index, const LoadContext& context, Sample& sample) const override {
    AudioReader& reader = readers_[static_cast<std::size_t>(context.worker)];
    Status status = reader.open(paths_[static_cast<std::size_t>(index)]);
    if (!status.ok()) return status;
    const auto total = static_cast<std::int64_t>(reader.info().duration_seconds * rate_hz);
    Random random = context.random("window");
    AudioOptions options{.start = random.below(std::max<std::int64_t>(1, total - window + 1)),
                         .samples = window,
                         .sample_rate_hz = rate_hz,
                         .channels = 1};
    AudioResult result;
    return reader.decode(options, sample.out("sound").as<float>(), result);
  }

 private:
  std::vector<std::filesystem::path> paths_;
  mutable std::vector<AudioReader> readers_;
  Schema schema_{{.name = "sound", .dtype = DType::float32, .shape = {window}}};
};

struct Options {
  std::string folder, list;
  int workers = 2;
  std::int64_t passes = 4;
};

std::vector<std::filesystem::path> files_of(const Options& o) {
  std::vector<std::filesystem::path> paths;
  if (!o.list.empty()) {
    std::ifstream in(o.list);
    for (std::string line; std::getline(in, line);) {
      if (!line.empty()) paths.push_back(std::filesystem::path(o.folder) / line);
    }
  } else {
    for (const auto& entry : std::filesystem::directory_iterator(o.folder)) {
      if (entry.is_regular_file()) paths.push_back(entry.path());
    }
    std::ranges::sort(paths);
  }
  if (paths.empty()) throw Error("no files").at(o.folder).kind(ErrorKind::usage);
  return paths;
}

void run(const Options& o) {
  auto dataset = std::make_shared<Windows>(files_of(o), o.workers);
  Loader loader(dataset, {.batch_size = 32, .shuffle = true, .threads = o.workers});
  Measurement what{.workload = "W5-audio",
                   .version = "0.1",
                   .note = "random window of 2 s, sample-accurate seek + swresample",
                   .workers = o.workers,
                   .files = dataset->size(),
                   .passes = o.passes};
  float sum = 0;
  measure(what, loader, [&](const Batch& batch) { sum += batch["sound"].as<float>()[0]; });
  if (loader.stats().bad_samples > 0) {
    throw Error(std::to_string(loader.stats().bad_samples) + " files could not be read");
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Measures how fast windows of audio files become batches.");
  app.footer("Example:\n  bench_audio corpus --list audio.txt --workers 2 --passes 4");
  Options options;
  app.add_option("folder", options.folder)->required()->check(CLI::ExistingDirectory);
  app.add_option("--list", options.list, "file with one path per line, relative to the folder")
      ->check(CLI::ExistingFile);
  app.add_option("--workers", options.workers)->check(CLI::Range(1, 256))->capture_default_str();
  app.add_option("--passes", options.passes)->check(CLI::PositiveNumber)->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  try {
    run(options);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_audio: %s\n", error.what());
    return 1;
  }
}
