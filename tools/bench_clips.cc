// Clips or GIFs of a folder through the loader: 17 frames from the first on, the centre square at
// 128 x 128, [4, 3, 17, 128, 128]. Prints one JSON line.
#include "bench_measure.h"

#include <millrace/decoders/gif.h>
#include <millrace/decoders/video.h>
#include <millrace/pipeline/loader.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace {

using namespace millrace;

// One reader per worker, so that buffers and filters are reused from file to file.
template <typename Reader>
class Clips : public Dataset {
 public:
  Clips(std::vector<std::filesystem::path> paths, int workers)
      : paths_(std::move(paths)), readers_(static_cast<std::size_t>(workers)) {}

  std::int64_t size() const override { return std::ssize(paths_); }
  const Schema& schema() const override { return schema_; }
  std::string describe(std::int64_t index) const override {
    return paths_[static_cast<std::size_t>(index)].string();
  }
  Status load(std::int64_t index, const LoadContext& context, Sample& sample) const override {
    Reader& reader = readers_[static_cast<std::size_t>(context.worker)];
    Status status = reader.open(paths_[static_cast<std::size_t>(index)]);
    if (!status.ok()) return status;
    ClipResult result;
    return reader.decode(options_, sample.out("video").as<std::uint8_t>(), result);
  }

 private:
  std::vector<std::filesystem::path> paths_;
  mutable std::vector<Reader> readers_;
  ClipOptions options_{
      .frames = FrameSelection::first(17), .height = 128, .width = 128, .layout = ClipLayout::cthw};
  Schema schema_{{.name = "video", .dtype = DType::uint8, .shape = {3, 17, 128, 128}}};
};

struct Options {
  std::string folder, set = "clips";
  int workers = 2;
  std::int64_t passes = 4;
};

std::vector<std::filesystem::path> files_in(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.is_regular_file()) paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  if (paths.empty()) throw Error("no files").at(folder).kind(ErrorKind::usage);
  return paths;
}

template <typename Reader>
void run(const Options& o) {
  auto dataset = std::make_shared<Clips<Reader>>(files_in(o.folder), o.workers);
  Loader loader(dataset, {.batch_size = 4, .shuffle = true, .threads = o.workers});
  Measurement what{.workload = o.set == "gif" ? "W3-gif" : "W2-clips",
                   .version = "0.1",
                   .note = "first 17 frames, one decoding thread each",
                   .workers = o.workers,
                   .files = dataset->size(),
                   .passes = o.passes};
  std::uint64_t sum = 0;
  measure(what, loader, [&](const Batch& batch) { sum += batch["video"].as<std::uint8_t>()[0]; });
  if (loader.stats().bad_samples > 0) {
    throw Error(std::to_string(loader.stats().bad_samples) + " files could not be read");
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Measures how fast clips of a folder become batches.");
  app.footer("Example:\n  bench_clips corpus/clips --set clips --workers 2 --passes 4");
  Options options;
  app.add_option("folder", options.folder)->required()->check(CLI::ExistingDirectory);
  app.add_option("--set", options.set)->check(CLI::IsMember({"clips", "gif"}));
  app.add_option("--workers", options.workers)->check(CLI::Range(1, 256))->capture_default_str();
  app.add_option("--passes", options.passes)->check(CLI::PositiveNumber)->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  try {
    options.set == "gif" ? run<GifReader>(options) : run<VideoReader>(options);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_clips: %s\n", error.what());
    return 1;
  }
}
