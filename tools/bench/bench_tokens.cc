// Random rows of a token file, int64 [200000, 1024], as batches of 64 through the loader. Writes
// the .npy and .arrow files it needs once, from a raw file or from nothing. Prints one JSON line.
#include "bench_measure.h"
#include "tools/cli/command_line.h"

#include <millrace/datasets/arrays/memmap.h>
#include <millrace/datasets/arrow/arrow_dataset.h>
#include <millrace/datasets/caches/cache_writer.h>
#include <millrace/pipeline/base/random.h>
#include <millrace/pipeline/loader/loader.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace {

using namespace millrace;

struct BenchTokensOptions {
  std::string file, from, access = "normal";
  int workers = 2;
  int prefetch = 4;
  std::int64_t rows = 200'000, length = 1024, batch = 64, passes = 3;
  bool cold = false;
};

Field token_field(const BenchTokensOptions& o) {
  return {.name = "tokens", .dtype = DType::int64, .shape = {o.length}};
}

void write_file(const BenchTokensOptions& o) {
  Schema schema{token_field(o)};
  std::optional<RawMemmap> raw;
  if (!o.from.empty()) raw.emplace(o.from, token_field(o), o.rows);
  CacheWriter writer(o.file, {.schema = schema, .sources = o.rows});
  Array made = Array::empty(DType::int64, {o.length});
  for (std::int64_t shard : writer.missing()) {
    ShardWriter rows = writer.begin(shard);
    for (std::int64_t i : writer.range(shard)) {
      Random random(0, 0, i, "tokens");
      if (!raw) {
        for (std::int64_t& token : made.as<std::int64_t>()) token = random.below(50'257);
      }
      Array row = raw ? raw->rows().row(i) : made;
      rows.append(i, {.name = "row " + std::to_string(i)}, std::span(&row, 1));
    }
    rows.finish();
  }
  writer.join();
}

// Drops the file from the page cache, so that every row comes from the disk.
void make_cold(const std::string& path) {
  int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  ::fdatasync(file);
  ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
  ::close(file);
}

void run(const BenchTokensOptions& o) {
  if (!std::filesystem::exists(o.file)) write_file(o);
  if (o.cold) make_cold(o.file);
  Access access = o.access == "random"       ? Access::random
                  : o.access == "sequential" ? Access::sequential
                                             : Access::normal;
  bool arrow = format_of(o.file) == CacheFormat::arrow;
  AnyDataset all = arrow ? AnyDataset(ArrowDataset(o.file, {.access = access}))
                   : format_of(o.file) == CacheFormat::npy
                       ? AnyDataset(NpyDataset(o.file, {.access = access}))
                       : AnyDataset(RawMemmap(o.file, token_field(o), -1, {.access = access}));
  std::string field = all->schema()[0].name;
  Loader loader(all, {.batch_size = o.batch,
                      .shuffle = true,
                      .prefetch = o.prefetch,
                      .threads = o.workers,
                      .errors = {.fail = true}});
  Measurement what{.workload = "tokens",
                   .peer = arrow ? "millrace_arrow" : "millrace_npy",
                   .note = o.access + (o.cold ? ", cold" : ", warm"),
                   .workers = o.workers,
                   .files = all->size(),
                   .passes = o.passes};
  std::int64_t sum = 0;
  auto consume = [&](const Batch& batch) { sum += batch[field].as<const std::int64_t>()[0]; };
  measure(what, loader, consume, !o.cold);
}

}  // namespace

int main(int argc, char** argv) {
  CommandLine line("bench_tokens", "Measures how fast random rows of a token file become batches.",
                   "\nExamples:\n  bench_tokens tokens.npy --from tokens.bin\n"
                   "  bench_tokens tokens.arrow --cold --access random\n");
  BenchTokensOptions values;
  const Options options = line.options();
  options.add("file", values.file, "token file: .npy, .arrow or .bin; written first if missing")
      .required();
  options.add("--from", values.from, "file of raw int64 rows to write the token file from")
      .existing_file();
  options.add("--rows", values.rows, "number of rows of the token file").positive();
  options.add("--length", values.length, "number of tokens of a row").positive();
  options.add("--batch", values.batch, "number of rows in a batch").positive();
  options.add("--workers", values.workers, "number of loading threads").range(1, 256);
  options.add("--prefetch", values.prefetch, "number of batches to load ahead").range(1, 64);
  options.add("--passes", values.passes, "number of timed passes over the file").positive();
  options
      .add("--access", values.access,
           "access pattern announced to the kernel: normal, random or sequential")
      .one_of({"normal", "random", "sequential"});
  options.flag("--cold", values.cold, "drop the file from the page cache and time the first pass");
  return line.run(argc, argv, [&] {
    run(values);
    return 0;
  });
}
