// Sets of files that are not kept in the tree. Say where they are, or these tests are skipped:
//   MILLRACE_PNGSUITE        the folder with PngSuite's files
//   MILLRACE_IMAGE_FOLDERS   folders with any images, separated by colons
#include "tests/decoders/image/image_files.h"

#include <millrace/decoders/image/image_transform.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(ImageCorpus, PngSuiteGoodFilesAreAcceptedAndCorruptOnesRefused) {
  const char* folder = std::getenv("MILLRACE_PNGSUITE");
  if (folder == nullptr) GTEST_SKIP() << "MILLRACE_PNGSUITE is not set";
  int accepted = 0, refused = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with(".png")) continue;
    Array pixels;
    Status status = decode_whole(read_bytes(entry.path()), {}, pixels);
    EXPECT_EQ(status.ok(), name[0] != 'x') << name;
    ++(status.ok() ? accepted : refused);
  }
  EXPECT_EQ(accepted, 161);
  EXPECT_EQ(refused, 14);
}

TEST(ImageCorpus, EveryFileIsDecodedToleratedOrRefused) {
  const char* folders = std::getenv("MILLRACE_IMAGE_FOLDERS");
  if (folders == nullptr) GTEST_SKIP() << "MILLRACE_IMAGE_FOLDERS is not set";
  std::istringstream list(folders);
  for (std::string folder; std::getline(list, folder, ':');) {
    std::map<std::string, int> counts;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      if (!entry.is_regular_file()) continue;
      const auto bytes = read_bytes(entry.path());
      Array pixels, row = Array::empty(DType::uint8, {3, 64, 64});
      Status strict = decode_whole(bytes, {}, pixels);
      Status tolerant = decode_whole(bytes, {.tolerant = true}, pixels);
      Status part = transform_image(bytes, {}, row);
      if (strict.ok()) {
        EXPECT_TRUE(part.ok() && tolerant.ok()) << entry.path();
      }
      ++counts[strict.ok() ? "decoded" : tolerant.ok() ? "tolerated" : "refused"];
      if (!strict.ok()) std::printf("%s\n", strict.error().at(entry.path().string()).what());
    }
    for (const auto& [what, count] : counts) {
      std::printf("%s: %d %s\n", folder.c_str(), count, what.c_str());
    }
  }
}

}  // namespace
}  // namespace millrace
