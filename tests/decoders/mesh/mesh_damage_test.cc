// Two thousand truncations and bit flips of each format of meshes and text: any answer is good, but
// it must come without a crash. Run it under the sanitizers too.
#include "tests/reference.h"

#include <millrace/decoders/mesh/mesh.h>
#include <millrace/decoders/text/text.h>
#include <millrace/decoders/text/tokenizer.h>
#include <millrace/pipeline/base/random.h>

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace millrace {
namespace {

using Bytes = std::vector<std::byte>;

bool decode_as_mesh(const Bytes& bytes, const std::string& name) {
  Mesh mesh;
  return decode_mesh(bytes, {.hint = mesh_format_of(name), .bins = 128}, mesh).ok();
}

bool decode_as_text(const Bytes& bytes, const std::string&) {
  std::string text;
  std::vector<std::int32_t> ids;
  if (!decode_text(bytes, text).ok()) return false;
  return byte_tokenizer()->encode(text, ids).ok();
}

bool decode_as_merges(const Bytes& bytes, const std::string&) {
  std::unique_ptr<const Tokenizer> tokenizer;
  std::vector<std::int32_t> ids;
  if (!load_bpe(bytes, {}, tokenizer).ok()) return false;
  return tokenizer->encode("the cat in the hat", ids).ok();
}

struct Format {
  const char* name;
  const char* seed;  // target and name in make_seeds.py
  bool (*decode)(const Bytes&, const std::string&);
};

void PrintTo(const Format& format, std::ostream* out) {
  *out << format.name;
}

const Format formats[] = {
    {"Obj", "obj/plain.obj", decode_as_mesh},
    {"ObjWithSlashes", "obj/slashes.obj", decode_as_mesh},
    {"AsciiPly", "ply/ascii.ply", decode_as_mesh},
    {"BinaryPly", "ply/binary_little_endian.ply", decode_as_mesh},
    {"BigEndianPly", "ply/binary_big_endian_double.ply", decode_as_mesh},
    {"AsciiStl", "stl/ascii.stl", decode_as_mesh},
    {"BinaryStl", "stl/binary.stl", decode_as_mesh},
    {"Off", "off/colours.off", decode_as_mesh},
    {"Gltf", "gltf/sparse.gltf", decode_as_mesh},
    {"Glb", "gltf/binary.glb", decode_as_mesh},
    {"Text", "text/wide.txt", decode_as_text},
    {"Merges", "tokenizer/merges.txt", decode_as_merges},
    {"PackedMerges", "tokenizer/merges.txt.gz", decode_as_merges},
};

class DamagedPlain : public testing::TestWithParam<Format> {
 protected:
  static void SetUpTestSuite() {
    seeds_ = new TemporaryFolder;
    run_script("tests/fuzz/make_seeds.py", seeds_->path().string() + " obj ply stl off gltf text");
  }
  static void TearDownTestSuite() {
    delete seeds_;
    seeds_ = nullptr;
  }
  static inline TemporaryFolder* seeds_ = nullptr;
};

TEST_P(DamagedPlain, NeverCrashes) {
  const Format& format = GetParam();
  const Bytes whole = read_bytes(*seeds_ / format.seed);
  ASSERT_TRUE(format.decode(whole, format.seed));
  int decoded = 0;
  for (int i = 0; i < 2000; ++i) {
    Random random(7, 0, i, "damage");
    Bytes copy = whole;
    if (i % 2 == 0) copy.resize(static_cast<std::size_t>(random.below(std::ssize(copy))));
    for (std::int64_t flips = i % 2 == 0 ? 0 : 1 + random.below(4); flips > 0; --flips) {
      copy[static_cast<std::size_t>(random.below(std::ssize(copy)))] ^= std::byte{1}
                                                                        << random.below(8);
    }
    copy.shrink_to_fit();  // so that a sanitizer sees each read beyond the end
    decoded += format.decode(copy, format.seed) ? 1 : 0;
  }
  EXPECT_LT(decoded, 2000);
}

INSTANTIATE_TEST_SUITE_P(Formats, DamagedPlain, testing::ValuesIn(formats),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace millrace
