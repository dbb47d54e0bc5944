// Runs a loader over generated pictures and tells how fast it was and where the time went.
#include <millrace/datasets/compose/generated.h>
#include <millrace/pipeline/base/log.h>
#include <millrace/pipeline/loader/loader.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace {

using namespace millrace;

struct Options {
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

void declare(CLI::App& app, Options& o) {
  app.footer(examples);
  app.set_config("--config", "", "read options from a TOML file; its keys are the flags");
  app.add_option("--samples", o.data.count, "pictures in an epoch")->capture_default_str();
  app.add_option("--shape", o.shape, "height width channels")
      ->expected(1, 4)
      ->capture_default_str();
  app.add_option("--work-us", o.data.work_us, "time to spend on each picture, in microseconds")
      ->capture_default_str();
  app.add_option("--bad-fraction", o.data.bad_fraction, "share of pictures that cannot be loaded")
      ->capture_default_str();
  app.add_option("--batch-size", o.loader.batch_size)->capture_default_str();
  app.add_option("--prefetch", o.loader.prefetch, "batches prepared ahead")->capture_default_str();
  app.add_option("--threads", o.loader.threads, "0: one per core")->capture_default_str();
  app.add_option("--seed", o.loader.seed)->capture_default_str();
  app.add_option("--epochs", o.epochs)->capture_default_str();
  app.add_option("--step-us", o.step_us, "time the trainer spends on each batch")
      ->capture_default_str();
  app.add_option("--max-bytes", o.loader.max_bytes, "refuse to need more memory; 0: no limit")
      ->capture_default_str();
  app.add_flag("--to-float", o.to_float, "convert to float [0,1], channels first");
  app.add_flag("--gpu", o.gpu, "send batches to the GPU if there is one");
  app.add_option("--errors", o.errors, "record bad samples in this file");
  app.add_option("--trace", o.trace, "write what each worker did as Chrome trace events");
  app.add_option("--dump-graph", o.graph, "write a slot's task graph in Graphviz' DOT");
  app.add_flag("--json", o.json, "print the result as one JSON object");
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

void run(Options& o) {
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
  CLI::App app(
      "Runs a loader over generated pictures and tells how fast it was and where the time "
      "went.");
  Options options;
  declare(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    int code = app.exit(error);
    return code == 0 ? 0 : 2;
  }
  try {
    run(options);
    return 0;
  } catch (const Error& error) {
    std::fprintf(stderr, "bench_loader: %s\n", error.what());
    return error.kind() == ErrorKind::usage ? 2 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_loader: %s\n", error.what());
    return 1;
  }
}
