// The codebook stage against numpy: the nearest patch in the least-squares sense.
#include "tests/reference.h"

#include <millrace/datasets/tokens/token_encoder.h>
#include <millrace/pipeline/base/error.h>

#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

namespace millrace {
namespace {

// Writes codebook.npy and pixels.bin, and prints the tokens that numpy finds.
std::string reference(const TemporaryFolder& folder, const std::string& shape, int entries,
                      int patch, int frames) {
  return run_python(R"(
import sys, numpy as np
folder, shape, entries, p, f = sys.argv[1], eval(sys.argv[2]), *map(int, sys.argv[3:])
rng = np.random.default_rng(5)
pixels = rng.integers(0, 256, shape, dtype=np.uint8)
c = shape[-1]
book = rng.random((entries, f * p * p * c), dtype=np.float32)
np.save(folder + "/codebook.npy", book)
pixels.tofile(folder + "/pixels.bin")
x = pixels.astype(np.float64) / 255
if len(shape) == 4: x = x[:, None]
n, t, h, w, _ = x.shape
x = x.reshape(n, t // f, f, h // p, p, w // p, p, c).transpose(0, 1, 3, 5, 2, 4, 6, 7)
x = x.reshape(n, t // f, h // p, w // p, -1)
distances = ((x[..., None, :] - book.astype(np.float64)) ** 2).sum(-1)
print(*distances.argmin(-1).ravel())
)",
                    folder.path().string() + " '" + shape + "' " + std::to_string(entries) + " " +
                        std::to_string(patch) + " " + std::to_string(frames));
}

Array read_pixels(const TemporaryFolder& folder, const Shape& shape) {
  Array pixels = Array::empty(DType::uint8, shape);
  std::ifstream in(folder / "pixels.bin", std::ios::binary);
  in.read(reinterpret_cast<char*>(pixels.data()), static_cast<std::streamsize>(pixels.bytes()));
  EXPECT_TRUE(in);
  return pixels;
}

void expect_tokens(const Array& tokens, const std::string& expected) {
  std::istringstream in(expected);
  std::int64_t token = 0, at = 0;
  for (; in >> token; ++at) {
    ASSERT_LT(at, tokens.elements());
    EXPECT_EQ(tokens.as<const std::int64_t>()[static_cast<std::size_t>(at)], token) << at;
  }
  EXPECT_EQ(at, tokens.elements());
}

TEST(Codebook, FindsTheNearestPatchOfPictures) {
  TemporaryFolder folder;
  std::string expected = reference(folder, "(5, 16, 24, 3)", 50, 8, 1);
  for (int threads : {1, 3}) {
    auto stage = load_codebook(folder / "codebook.npy", {.threads = threads});
    EXPECT_EQ(stage->vocabulary(), 50);
    EXPECT_EQ(stage->token_shape({16, 24, 3}), (Shape{2, 3}));
    Array tokens = stage->encode(read_pixels(folder, {5, 16, 24, 3}));
    EXPECT_EQ(tokens.shape(), (Shape{5, 2, 3}));
    expect_tokens(tokens, expected);
  }
}

TEST(Codebook, FindsTheNearestPatchOfClips) {
  TemporaryFolder folder;
  std::string expected = reference(folder, "(2, 4, 8, 12, 1)", 33, 4, 2);
  auto stage = load_codebook(folder / "codebook.npy", {.patch = 4, .channels = 1, .frames = 2});
  Array tokens = stage->encode(read_pixels(folder, {2, 4, 8, 12, 1}));
  EXPECT_EQ(tokens.shape(), (Shape{2, 2, 2, 3}));
  expect_tokens(tokens, expected);
}

TEST(Codebook, NamesItselfByItsContent) {
  TemporaryFolder one, two;
  reference(one, "(1, 8, 8, 3)", 10, 8, 1);
  reference(two, "(1, 8, 8, 3)", 11, 8, 1);
  EXPECT_EQ(load_codebook(one / "codebook.npy")->hash(),
            load_codebook(one / "codebook.npy")->hash());
  EXPECT_NE(load_codebook(one / "codebook.npy")->hash(),
            load_codebook(two / "codebook.npy")->hash());
}

TEST(Codebook, RefusesWhatCannotBeCut) {
  TemporaryFolder folder;
  reference(folder, "(1, 8, 8, 3)", 10, 8, 1);
  EXPECT_THROW(load_codebook(folder / "codebook.npy", {.patch = 7}), Error);
  auto stage = load_codebook(folder / "codebook.npy");
  EXPECT_THROW(stage->token_shape({20, 16, 3}), Error);
  EXPECT_THROW(stage->token_shape({16, 16, 1}), Error);
  run_python("import sys, numpy; numpy.save(sys.argv[1], numpy.zeros((4, 192)))",
             (folder / "double.npy").string());
  EXPECT_THROW(load_codebook(folder / "double.npy"), Error);
}

}  // namespace
}  // namespace millrace
