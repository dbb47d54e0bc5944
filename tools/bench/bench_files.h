// What the decoding benchmarks share: a list of files, one reader per worker, one main function.
#pragma once

#include "tools/bench/bench_measure.h"
#include "tools/cli/command_line.h"

#include <millrace/pipeline/loader/loader.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace millrace {

struct BenchOptions {
  std::string source;  // a folder, or a file with one path a line
  int workers = 2;
  std::int64_t passes = 2;
  std::int64_t stride = 1;
};

inline std::vector<std::string> files_of(const BenchOptions& options) {
  namespace fs = std::filesystem;
  std::vector<std::string> all, kept;
  if (fs::is_directory(options.source)) {
    for (const auto& entry : fs::recursive_directory_iterator(options.source)) {
      if (entry.is_regular_file()) all.push_back(entry.path().string());
    }
    std::ranges::sort(all);
  } else {
    std::ifstream lines(options.source);
    for (std::string line; std::getline(lines, line);) all.push_back(line);
  }
  for (std::size_t i = 0; i < all.size(); i += static_cast<std::size_t>(options.stride)) {
    kept.push_back(all[i]);
  }
  if (kept.empty()) throw Error("no files").at(options.source).kind(ErrorKind::usage);
  return kept;
}

// Reads the whole file into a reused buffer: one call for the size, one for the bytes.
inline Status read_file(const std::string& path, std::vector<std::byte>& bytes) {
  int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return Error("cannot open").at(path);
  struct stat info {};
  fstat(file, &info);
  bytes.resize(static_cast<std::size_t>(info.st_size));
  std::size_t have = 0;
  while (have < bytes.size()) {
    ssize_t got = read(file, bytes.data() + have, bytes.size() - have);
    if (got <= 0) break;
    have += static_cast<std::size_t>(got);
  }
  close(file);
  return have == bytes.size() ? Status() : Error("cannot read").at(path);
}

// A data set of files. `make_loader` is called once per worker and returns the function that fills
// a sample from a path, so that decoder state is reused from file to file.
class BenchFiles : public Dataset {
 public:
  using Load = std::function<Status(const std::string&, const LoadContext&, Sample&)>;

  BenchFiles(std::vector<std::string> files, Schema schema, int workers,
             const std::function<Load()>& make_loader)
      : files_(std::move(files)), schema_(std::move(schema)) {
    for (int i = 0; i < workers; ++i) loads_.push_back(make_loader());
  }
  std::int64_t size() const override { return std::ssize(files_); }
  const Schema& schema() const override { return schema_; }
  std::string describe(std::int64_t index) const override {
    return files_[static_cast<std::size_t>(index)];
  }
  Status load(std::int64_t index, const LoadContext& context, Sample& sample) const override {
    return loads_[static_cast<std::size_t>(context.worker)](files_[static_cast<std::size_t>(index)],
                                                            context, sample);
  }

 private:
  std::vector<std::string> files_;
  Schema schema_;
  std::vector<Load> loads_;
};

// Measures shuffled batches of the files; an unreadable file ends the run.
inline void measure_files(Measurement what, const BenchOptions& options, std::int64_t batch_size,
                          const Schema& schema, const std::function<BenchFiles::Load()>& loads) {
  auto files = std::make_shared<BenchFiles>(files_of(options), schema, options.workers, loads);
  what.workers = options.workers;
  what.passes = options.passes;
  what.files = files->size();
  Loader loader(files, {.batch_size = batch_size,
                        .shuffle = true,
                        .threads = options.workers,
                        .errors = {.fail = true}});
  std::int64_t rows = 0;
  measure(what, loader, [&](const Batch& batch) { rows += batch.size(); });
}

// Adds the options that all of these programs share, parses, and runs the measurement.
inline int bench_main(CommandLine& line, BenchOptions& values, int argc, char** argv,
                      const std::function<void()>& run) {
  const Options options = line.options();
  options.add("source", values.source, "folder with the files, or a file with one path per line")
      .required()
      .existing_path();
  options.add("--workers", values.workers, "number of loading threads").range(1, 256);
  options.add("--passes", values.passes, "number of timed passes over the files").positive();
  options.add("--stride", values.stride, "take every n-th file of the folder").positive();
  return line.run(argc, argv, [&] {
    run();
    return 0;
  });
}

}  // namespace millrace
