#include "tools/preprocess/job.h"

#include <CLI/CLI.hpp>

namespace millrace {

void declare_run_options(CLI::App& app, RunOptions& o) {
  const char* output = "Output";
  app.add_option("--out", o.out, "the cache to write")
      ->required()
      ->type_name("FILE")
      ->group(output);
  app.add_option("--format", o.format, "npy, raw or arrow; by default as --out ends")
      ->check(CLI::IsMember({"npy", "raw", "arrow"}))
      ->group(output);
  app.add_flag("--raw", o.raw, "a headerless memmap, with its shape in a file beside")
      ->group(output);
  app.add_option("--compress", o.compress, "zstd:LEVEL, for arrow; by default not, and mapped")
      ->group(output);
  app.add_option("--split", o.split, "several caches, e.g. train=0.95,valid=0.05")->group(output);
  app.add_option("--seed", o.seed, "of the split and of random choices")
      ->capture_default_str()
      ->group(output);
  app.add_option("--limit", o.limit, "only the first so many files")
      ->check(CLI::NonNegativeNumber)
      ->group(output);

  const char* run = "Run";
  app.add_option("--jobs", o.jobs, "threads; 0: one per core")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str()
      ->group(run);
  auto* resume = app.add_flag("--resume", o.resume, "go on with what is there (the default)");
  auto* fresh = app.add_flag("--fresh", o.fresh, "remove what is there, and begin anew");
  resume->group(run);
  fresh->group(run)->excludes(resume);
  app.add_option("--shard", o.shard, "i/n: the i-th of n parts, for job arrays")->group(run);
  app.add_option("--shard-rows", o.shard_rows,
                 "files per shard; 0: about 16 MB, or for tokens 32 and at most 1024 shards")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str()
      ->group(run);
  app.add_option("--on-error", o.on_error, "a file that cannot be read: skip it, or fail")
      ->check(CLI::IsMember({"skip", "fail"}))
      ->capture_default_str()
      ->group(run);
  app.add_option("--max-errors", o.max_errors, "fail when more files than this cannot be read")
      ->check(CLI::NonNegativeNumber)
      ->group(run);
  app.add_flag("--dry-run", o.dry_run, "tell what would be done")->group(run);
  app.add_flag("--json", o.json, "print the result as one JSON object")->group(run);
  app.add_flag("--quiet", o.quiet, "no progress, warnings only")->group(run);
  app.add_option("--trace", o.trace, "write what each thread did as Chrome trace events")
      ->type_name("FILE")
      ->group(run);
  app.add_option("--dump-graph", o.graph, "write a batch's task graph in Graphviz' DOT")
      ->type_name("FILE")
      ->group(run);
}

}  // namespace millrace
