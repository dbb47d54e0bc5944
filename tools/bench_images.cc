// Runs a folder of images through the classic transform into batches [32, 3, 256, 256] and prints
// one JSON line: see bench_measure.h.
#include "bench_measure.h"

#include <millrace/decoders/image_transform.h>
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

struct Options {
  std::string folder;
  std::vector<std::string> extensions{".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp"};
  std::int64_t size = 256;
  std::int64_t batch_size = 32;
  std::int64_t stride = 2;
  std::int64_t passes = 2;
  int workers = 2;
  bool fast = false;
};

bool read_file(const std::string& path, std::vector<std::byte>& bytes) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) return false;
  std::error_code failed;
  bytes.resize(std::filesystem::file_size(path, failed));
  const bool whole = !failed && std::fread(bytes.data(), 1, bytes.size(), file) == bytes.size();
  std::fclose(file);
  return whole;
}

class Images : public Dataset {
 public:
  Images(std::vector<std::string> files, std::int64_t size, bool fast)
      : files_(std::move(files)),
        size_(size),
        fast_(fast),
        schema_{{.name = "image", .dtype = DType::uint8, .shape = {3, size, size}}} {}

  std::int64_t size() const override { return static_cast<std::int64_t>(files_.size()); }
  const Schema& schema() const override { return schema_; }
  std::string describe(std::int64_t index) const override {
    return files_[static_cast<std::size_t>(index)];
  }

  Status load(std::int64_t index, const LoadContext& context, Sample& sample) const override {
    thread_local std::vector<std::byte> bytes;
    if (!read_file(describe(index), bytes)) return Error("cannot read").at(describe(index));
    const TransformOptions options{
        .size = size_, .flip = context.random("flip").uniform() < 0.5, .fast = fast_};
    Status status = transform_image(bytes, options, sample.out("image"));
    if (!status.ok()) status.error().at(describe(index));
    return status;
  }

 private:
  std::vector<std::string> files_;
  std::int64_t size_;
  bool fast_;
  Schema schema_;
};

std::vector<std::string> list(const Options& o) {
  std::vector<std::string> all, kept;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(o.folder)) {
    std::string extension = entry.path().extension().string();
    std::ranges::transform(extension, extension.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (std::ranges::find(o.extensions, extension) != o.extensions.end()) {
      all.push_back(entry.path().string());
    }
  }
  std::ranges::sort(all);
  for (std::size_t i = 0; i < all.size(); i += static_cast<std::size_t>(o.stride)) {
    kept.push_back(all[i]);
  }
  return kept;
}

void run(const Options& o) {
  Images images(list(o), o.size, o.fast);
  const std::int64_t files = images.size();
  Loader loader(std::move(images),
                {.batch_size = o.batch_size, .shuffle = true, .threads = o.workers});
  std::uint64_t sum = 0;
  measure({.workload = "W1-" + std::filesystem::path(o.folder).filename().string(),
           .peer = o.fast ? "millrace fast" : "millrace",
           .version = "millrace 0.1.0",
           .note = "threads",
           .workers = o.workers,
           .files = files,
           .passes = o.passes},
          loader, [&](const Batch& batch) { sum += batch["image"].as<std::uint8_t>()[0]; });
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Measures how fast a folder of images becomes batches of [32, 3, 256, 256].");
  Options o;
  app.footer("\nExamples:\n  bench_images photos\n  bench_images photos --fast --stride 1\n");
  app.add_option("folder", o.folder)->required()->check(CLI::ExistingDirectory);
  app.add_flag("--fast", o.fast, "scaled JPEG decoding");
  app.add_option("--workers", o.workers)->capture_default_str();
  app.add_option("--passes", o.passes, "timed passes over the files")->capture_default_str();
  app.add_option("--stride", o.stride, "take every n-th file")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--size", o.size)->capture_default_str();
  app.add_option("--batch-size", o.batch_size)->capture_default_str();
  app.add_option("--exts", o.extensions, "which files")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    run(o);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_images: %s\n", error.what());
    return 1;
  }
}
