#include "tools/preprocess/job.h"

namespace millrace {

namespace {

void declare_output(const Options& output, RunOptions& o) {
  output.add("--out", o.out, "cache file to write: .npy or .arrow, or any name with --format")
      .required()
      .type_name("FILE");
  output
      .add("--format", o.format,
           "file format: npy, raw or arrow; default: from the ending of --out")
      .one_of({"npy", "raw", "arrow"});
  output.flag("--raw", o.raw,
              "write a headerless memmap with its shape in a file beside it; same as --format raw");
  output.add("--compress", o.compress,
             "compression of arrow buffers, zstd:LEVEL; default: uncompressed and memory-mapped");
  output.add("--split", o.split,
             "write several caches with these fractions of the files, e.g. train=0.95,valid=0.05");
  output.add("--seed", o.seed, "random seed of the split and of random frames and windows");
  output.add("--limit", o.limit, "maximum number of files to read, in order; default: all")
      .non_negative()
      .default_text("");
}

}  // namespace

void declare_run_options(const Options& options, RunOptions& o) {
  declare_output(options.group("Output"), o);
  Options run = options.group("Run");
  run.add("--jobs", o.jobs, "number of threads; 0: one per core").range(0, 1024);
  Option resume =
      run.flag("--resume", o.resume, "continue an interrupted run; this is the default");
  run.flag("--fresh", o.fresh, "remove an existing cache and its shards first").excludes(resume);
  run.add("--shard", o.shard, "i/n: write only the i-th of n parts, for job arrays");
  run.add("--shard-rows", o.shard_rows,
          "number of files per shard; 0: about 16 MB, or for tokens 32 files and at most 1024 "
          "shards")
      .non_negative();
  run.add("--on-error", o.on_error, "what to do with an unreadable file: skip or fail")
      .one_of({"skip", "fail"});
  run.add("--max-errors", o.max_errors,
          "number of unreadable files above which the run fails; default: no limit")
      .non_negative()
      .default_text("");
  run.flag("--dry-run", o.dry_run, "print what would be done and exit");
  run.flag("--json", o.json, "print the result as one JSON object");
  run.flag("--quiet", o.quiet, "print warnings and the result only, no progress");
  run.add("--trace", o.trace, "file for the work of each thread, as Chrome trace events")
      .type_name("FILE");
  run.add("--dump-graph", o.graph, "file for a batch's task graph, in Graphviz DOT")
      .type_name("FILE");
}

}  // namespace millrace
