// parity_check FIXTURE...: runs the model of each fixture and compares it with the results of
// Python.
#include "tests/parity/models.h"

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
  CLI::App app("Compares models with the Python packages: losses, outputs and gradients.");
  std::vector<std::string> files;
  millrace::Tolerance tolerance;
  bool quiet = false;
  int threads = 1;
  app.footer("\nExample:\n  parity_check tests/parity/fixtures/*.pt\n");
  app.add_option("fixtures", files, "files made by the oracle scripts or by make_fixtures.py")
      ->required();
  app.add_option("--loss", tolerance.loss, "largest relative error of a loss")
      ->capture_default_str();
  app.add_option("--output", tolerance.output, "largest relative error of an output")
      ->capture_default_str();
  app.add_option("--gradient", tolerance.gradient, "largest relative error of a gradient")
      ->capture_default_str();
  app.add_option("--step", tolerance.step, "largest relative error after optimizer steps")
      ->capture_default_str();
  app.add_option("--zero", tolerance.zero,
                 "fraction of the largest gradient below which a gradient counts as rounding error")
      ->capture_default_str();
  app.add_option("--threads", threads, "number of LibTorch's threads; fixtures are made with 1")
      ->capture_default_str();
  app.add_flag(
      "--as-trained", tolerance.as_trained,
      "run models as in training, not in the order of the Python package; compares all gradients "
      "as one vector, and all parameters as one vector");
  app.add_flag("--quiet", quiet, "print failures only");
  CLI11_PARSE(app, argc, argv);
  torch::set_num_threads(threads);
  int passed = 0, failed = 0;
  for (const std::string& file : files) {
    millrace::Report report(std::filesystem::path(file).filename().string(), tolerance, !quiet);
    try {
      millrace::check(file, report);
    } catch (const std::exception& error) {
      report.failure(error.what());
    }
    passed += report.passed();
    failed += report.failed();
  }
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}
