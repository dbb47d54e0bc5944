// parity_check FIXTURE...: runs the model of each fixture and compares it with the results of
// Python.
#include "tests/parity/models.h"
#include "tools/cli/command_line.h"

#include <millrace/pipeline/base/error.h>
#include <millrace/training/device/torch_api.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace millrace {
namespace {

const std::map<std::string, std::function<void(const Fixture&, Report&)>> models = {
    {"mulan", check_mulan},
    {"mesh_transformer", check_mesh_transformer},
    {"nuwa", check_nuwa},
    {"nuwa_vqgan", check_nuwa_vqgan},
    {"mesh_autoencoder", check_mesh_autoencoder},
    {"video_tokenizer", check_video_tokenizer},
    {"vqgan", check_vqgan},
};

void check(const std::string& path, Report& report) {
  const Fixture fixture(path);
  auto found = models.find(fixture.model());
  if (found == models.end()) throw Error("unknown model '" + fixture.model() + "'");
  found->second(fixture, report);
}

}  // namespace
}  // namespace millrace

int main(int argc, char** argv) {
  using namespace millrace;
  CommandLine line("parity_check",
                   "Compares models with the Python packages: losses, outputs and gradients.",
                   "\nExamples:\n  parity_check tests/parity/fixtures/*.pt\n");
  std::vector<std::string> files;
  Tolerance tolerance;
  bool quiet = false;
  int threads = 1;
  const Options options = line.options();
  options.add("fixtures", files, "fixtures made by the oracle scripts or by make_fixtures.py")
      .required();
  options.add("--loss", tolerance.loss, "maximum relative error of a loss");
  options.add("--output", tolerance.output, "maximum relative error of an output");
  options.add("--gradient", tolerance.gradient, "maximum relative error of a gradient");
  options.add("--step", tolerance.step,
              "maximum relative error of parameters after optimizer steps");
  options.add("--zero", tolerance.zero,
              "fraction of the largest gradient below which a gradient counts as zero");
  options.add("--threads", threads, "number of LibTorch threads; fixtures are made with 1");
  options.flag("--as-trained", tolerance.as_trained,
               "run models as they train by default, not on the reference path: gradients and "
               "parameters are compared as one vector each");
  options.flag("--quiet", quiet, "print failures only, no passed comparisons");
  return line.run(argc, argv, [&] {
    torch::set_num_threads(threads);
    int passed = 0, failed = 0;
    for (const std::string& file : files) {
      Report report(std::filesystem::path(file).filename().string(), tolerance, !quiet);
      try {
        check(file, report);
      } catch (const std::exception& error) {
        report.failure(error.what());
      }
      passed += report.passed();
      failed += report.failed();
    }
    std::printf("%d passed, %d failed\n", passed, failed);
    return failed == 0 ? 0 : 1;
  });
}
