// Runs image files through the classic transform into batches [32, 3, 256, 256] and prints one JSON
// line: see bench_measure.h.
#include "tools/bench/bench_files.h"

#include <millrace/decoders/image/image_transform.h>

#include <string>
#include <vector>

namespace {

using namespace millrace;

BenchFiles::Load image_loader(std::int64_t size, bool fast) {
  return [=, bytes = std::vector<std::byte>()](const std::string& path, const LoadContext& context,
                                               Sample& sample) mutable -> Status {
    if (Status status = read_file(path, bytes); !status.ok()) return status;
    const TransformOptions options{
        .size = size, .flip = context.random("flip").uniform() < 0.5, .fast = fast};
    Status status = transform_image(bytes, options, sample.out("image"));
    if (!status.ok()) status.error().at(path);
    return status;
  };
}

}  // namespace

int main(int argc, char** argv) {
  CommandLine line("bench_images",
                   "Measures how fast image files become batches of [32, 3, 256, 256].",
                   "\nExamples:\n  bench_images photos\n  bench_images photos --fast --stride 2\n");
  BenchOptions options;
  std::int64_t size = 256, batch_size = 32;
  bool fast = false;
  line.options().flag("--fast", fast, "decode large JPEGs at reduced size");
  line.options().add("--size", size, "height and width of a picture, in pixels");
  line.options().add("--batch-size", batch_size, "number of pictures in a batch");
  return bench_main(line, options, argc, argv, [&] {
    measure_files({.workload = "images", .peer = fast ? "millrace fast" : "millrace"}, options,
                  batch_size, {{.name = "image", .dtype = DType::uint8, .shape = {3, size, size}}},
                  [=] { return image_loader(size, fast); });
  });
}
