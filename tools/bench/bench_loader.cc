// Runs a loader over generated pictures and tells how fast it was and where the time went.
#include "tools/cli/command_line.h"

#include <millrace/datasets/compose/generated.h>
#include <millrace/pipeline/base/log.h>
#include <millrace/pipeline/loader/loader.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>

#include <nlohmann/json.hpp>

namespace {

using namespace millrace;

struct BenchLoaderOptions {
  GeneratedOptions data{.count = 20'000};
  LoaderOptions loader{.batch_size = 32, .shuffle = true};
  std::vector<std::int64_t> shape{128, 128, 3};
  std::int64_t epochs = 1;
  std::int64_t step_us = 0;
  bool to_float = false;
  bool gpu = false;
  bool json = false;
  std::string errors, trace, graph;
};

constexpr const char* examples = R"(
Examples:
  bench_loader                                   # 20,000 pictures of 128 x 128, one epoch
  bench_loader --work-us 2000 --step-us 30000    # a slow decoder and a slow trainer: who waits?
  bench_loader --bad-fraction 0.05 --errors errors.jsonl
  bench_loader --trace trace.json                # open the file in Perfetto
  bench_loader --json                            # one line for scripts
)";

void declare(const Options& options, BenchLoaderOptions& o) {
  options.add("--samples", o.data.count, "number of pictures in an epoch");
  options.add("--shape", o.shape, "shape of a picture: height, width and channels").expected(1, 4);
  options.add("--work-us", o.data.work_us, "time to spend on each picture, in microseconds");
  options.add("--bad-fraction", o.data.bad_fraction, "fraction of pictures that cannot be loaded");
  options.add("--batch-size", o.loader.batch_size, "number of pictures in a batch");
  options.add("--prefetch", o.loader.prefetch, "number of batches to load ahead");
  options.add("--threads", o.loader.threads, "number of loading threads; 0: one per core");
  options.add("--seed", o.loader.seed, "random seed of the pictures' order");
  options.add("--epochs", o.epochs, "number of passes over the pictures");
  options.add("--step-us", o.step_us, "time the trainer spends on each batch, in microseconds");
  options.add("--max-bytes", o.loader.max_bytes,
              "maximum memory of the loader, in bytes; 0: no limit");
  options.flag("--to-float", o.to_float, "convert pictures to float in [0, 1], channels first");
  options.flag("--gpu", o.gpu, "copy batches to the GPU if there is one");
  options.add("--errors", o.errors, "file that records bad samples, as JSON lines");
  options.add("--trace", o.trace, "file for the work of each thread, as Chrome trace events");
  options.add("--dump-graph", o.graph, "file for a slot's task graph, in Graphviz DOT");
  options.flag("--json", o.json, "print the result as one JSON object");
}

nlohmann::json to_json(const LoaderStats& s) {
  nlohmann::json result{{"batches", s.batches},
                        {"samples", s.samples},
                        {"bytes", s.bytes},
                        {"seconds", s.wall_seconds},
                        {"samples_per_s", static_cast<double>(s.samples) / s.wall_seconds},
                        {"consumer_wait_seconds", s.consumer_wait_seconds},
                        {"slot_wait_seconds", s.slot_wait_seconds},
                        {"data_wait_share", s.data_wait_share()},
                        {"predicted_bytes", s.predicted_bytes},
                        {"bad_samples", s.bad_samples},
                        {"replaced", s.replaced},
                        {"verdict", s.verdict()}};
  for (const StageStats& stage : s.stages) {
    result["stages"][stage.name] = {{"count", stage.count},
                                    {"cpu_seconds", stage.cpu_seconds},
                                    {"p50_us", stage.p50_us},
                                    {"p99_us", stage.p99_us}};
  }
  return result;
}

void run(BenchLoaderOptions& o) {
  o.data.shape = Shape(o.shape);
  if (o.to_float) o.loader.to_float = {{"image", ToFloat::unit()}};
  if (o.gpu) o.loader.device = find_device();
  o.loader.errors.ledger = o.errors;
  o.loader.trace = !o.trace.empty();
  Loader loader(GeneratedImages(o.data), o.loader);
  if (!o.graph.empty()) {
    std::ofstream out(o.graph);
    if (!(out << loader.dump_graph())) throw Error("cannot write").at(o.graph);
  }
  for (std::int64_t epoch = 0; epoch < o.epochs; ++epoch) {
    for (const Batch& batch : loader) {
      batch.wait_on(nullptr);
      if (o.step_us > 0) std::this_thread::sleep_for(std::chrono::microseconds(o.step_us));
    }
  }
  LoaderStats stats = loader.stats();
  std::cout << (o.json ? to_json(stats).dump() + "\n" : to_string(stats));
  if (!o.trace.empty()) loader.write_trace(o.trace);
}

}  // namespace

int main(int argc, char** argv) {
  CommandLine line("bench_loader",
                   "Runs a loader over generated pictures and prints its speed and where the time "
                   "went.",
                   examples);
  BenchLoaderOptions options;
  declare(line.options(), options);
  return line.run(argc, argv, [&] {
    run(options);
    return 0;
  });
}
