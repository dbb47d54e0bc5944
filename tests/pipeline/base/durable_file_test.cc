// Files that get their name only when they are complete.
#include "tests/reference.h"

#include <millrace/pipeline/base/durable_file.h>

#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

namespace millrace {
namespace {

std::string content_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::size_t files_in(const std::filesystem::path& folder) {
  std::filesystem::directory_iterator files(folder);
  return static_cast<std::size_t>(std::distance(begin(files), end(files)));
}

TEST(DurableFile, KeepsTheOldContentUntilCommit) {
  TemporaryFolder folder;
  write_durably(folder / "a.txt", "old");
  {
    DurableFile file(folder / "a.txt");
    file.write("new");
    file.sync();
    EXPECT_EQ(content_of(folder / "a.txt"), "old");
  }
  EXPECT_EQ(content_of(folder / "a.txt"), "old");
  EXPECT_EQ(files_in(folder.path()), 1U);
  DurableFile file(folder / "a.txt");
  file.write("new");
  file.commit();
  EXPECT_EQ(content_of(folder / "a.txt"), "new");
  EXPECT_EQ(files_in(folder.path()), 1U);
}

TEST(DurableFile, ReturnsAnErrorWithPathAndStageWhereErrorsAreValues) {
  TemporaryFolder folder;
  const std::string text = "RIFF";
  auto bytes = std::as_bytes(std::span(text));
  EXPECT_TRUE(try_write_durably(folder / "a.wav", bytes, "wav").ok());
  EXPECT_EQ(content_of(folder / "a.wav"), "RIFF");
  Status status = try_write_durably(folder / "none/a.wav", bytes, "wav");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().source(), (folder / "none/a.wav").string());
  EXPECT_EQ(status.error().stage(), "wav");
  EXPECT_NE(status.error().reason().find("No such file"), std::string::npos);
}

}  // namespace
}  // namespace millrace
