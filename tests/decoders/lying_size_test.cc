// A small file that claims 10^9 pixels costs no more than 10 MB, in every format that can claim it.
#include "tests/faults/guarded_call.h"
#include "tests/reference.h"

#include <millrace/decoders/gif/gif.h>
#include <millrace/decoders/image/image_transform.h>
#include <millrace/decoders/video/video.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace millrace {
namespace {

// A field of /proc/self/status in kB: VmRSS is now, VmHWM the most there ever was.
long memory_kb(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(field + ":")) return std::stol(line.substr(field.size() + 1));
  }
  return -1;
}

template <typename Reader>
Status decode_clip(const std::filesystem::path& path) {
  Reader reader;
  if (Status status = reader.open(path); !status.ok()) return status;
  const ClipOptions options{.frames = FrameSelection::first(2), .height = 8, .width = 8};
  std::vector<std::uint8_t> clip(reader.clip_bytes(options));
  ClipResult result;
  return reader.decode(options, clip, result);
}

// Strict and tolerant, as a whole and as a part.
Status decode_picture(const std::filesystem::path& path) {
  const std::vector<std::byte> bytes = read_bytes(path);
  Array row = Array::empty(DType::uint8, {3, 8, 8});
  Status status;
  for (bool tolerant : {false, true}) {
    status = decode_image(bytes, {.tolerant = tolerant}, row);
    if (status.ok()) return status;
    status = transform_image(bytes, {.fast = tolerant, .image = {.tolerant = tolerant}}, row);
    if (status.ok()) return status;
  }
  return status;
}

Status decode(const std::filesystem::path& path, const std::string& kind) {
  if (kind == "image") return decode_picture(path);
  return kind == "gif" ? decode_clip<GifReader>(path) : decode_clip<VideoReader>(path);
}

// 31,623 squared is 10^9. libav has a limit of its own at 2^28; 16,000 squared is below that one.
class LyingSize : public testing::TestWithParam<int> {};

TEST_P(LyingSize, CostsNoMemory) {
  TemporaryFolder folder;
  std::istringstream lines(run_script("tests/decoders/make_lying_files.py",
                                      folder.path().string() + " " + std::to_string(GetParam())));
  int files = 0;
  for (std::string name, kind; lines >> name >> kind; ++files) {
    SCOPED_TRACE(name);
    EXPECT_LT(std::filesystem::file_size(folder / name), 8000U);
    const GuardedResult result = guarded_call({.seconds = 20}, [&] {
      // Pages of libraries that are touched for the first time are not the file's doing.
      const long before = memory_kb("VmRSS") - memory_kb("RssFile");
      const Status status = decode(folder / name, kind);
      const long grown = memory_kb("VmHWM") - memory_kb("RssFile") - before;
      return std::to_string(grown) + " kB: " + (status.ok() ? "decoded" : status.error().what());
    });
    EXPECT_EQ(result.fault, "");
    std::printf("| %s | %s |\n", name.c_str(), result.text.c_str());
    EXPECT_FALSE(result.text.ends_with(" decoded"));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they keep notes
    // While it guesses what a raw stream is, libav's H.264 decoder takes tables for what it
    // accepts.
    const bool is_raw_h264 = name == "a.h264" || name == "h264.ts";
    EXPECT_LT(std::stol(result.text), GetParam() < 20'000 && is_raw_h264 ? 120'000 : 10'000)
        << "kB";
#endif
  }
  EXPECT_GE(files, 32);
}

INSTANTIATE_TEST_SUITE_P(Sides, LyingSize, testing::Values(31'623, 16'000));

}  // namespace
}  // namespace millrace
