// Clips or GIFs through the loader: 17 frames from the first on, the centre square at 128 x 128,
// [4, 3, 17, 128, 128]. Prints one JSON line: see bench_measure.h.
#include "tools/bench/bench_files.h"

#include <millrace/decoders/gif/gif.h>
#include <millrace/decoders/video/video.h>

#include <memory>
#include <string>

namespace {

using namespace millrace;

// The reader keeps its buffers and filters from file to file.
template <typename Reader>
BenchFiles::Load clip_loader() {
  return [reader = std::make_shared<Reader>()](const std::string& path, const LoadContext&,
                                               Sample& sample) -> Status {
    Status status = reader->open(path);
    if (!status.ok()) return status;
    const ClipOptions options{.frames = FrameSelection::first(17),
                              .height = 128,
                              .width = 128,
                              .layout = ClipLayout::cthw};
    ClipResult result;
    return reader->decode(options, sample.out("video").as<std::uint8_t>(), result);
  };
}

}  // namespace

int main(int argc, char** argv) {
  CommandLine line(
      "bench_clips",
      "Measures how fast clips or animated GIFs become batches of [4, 3, 17, 128, "
      "128].",
      "\nExamples:\n  bench_clips clips --passes 4\n  bench_clips --gifs animations\n");
  BenchOptions options;
  bool gifs = false;
  line.options().flag("--gifs", gifs, "read the files as animated GIFs");
  return bench_main(line, options, argc, argv, [&] {
    measure_files({.workload = gifs ? "gifs" : "clips", .note = "one decoding thread each"},
                  options, 4,
                  {{.name = "video", .dtype = DType::uint8, .shape = {3, 17, 128, 128}}},
                  gifs ? clip_loader<GifReader> : clip_loader<VideoReader>);
  });
}
