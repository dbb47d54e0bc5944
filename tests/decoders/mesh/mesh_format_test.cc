#include "tests/decoders/mesh/mesh_helpers.h"
#include "tests/reference.h"

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace millrace {
namespace {

using Faces = std::vector<std::array<std::int64_t, 3>>;

const std::string square_obj = "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\n";

Mesh decoded(const std::string& text, MeshOptions options = untouched()) {
  Mesh mesh;
  Status status = decode_text_mesh(text, options, mesh);
  EXPECT_TRUE(status.ok()) << status.error().what();
  return mesh;
}

std::string ply_of(const std::string& elements, const std::string& body) {
  return "ply\nformat ascii 1.0\n" + elements + "end_header\n" + body;
}
const std::string ply_vertices =
    "element vertex 4\nproperty float x\nproperty float y\nproperty float z\n";
const std::string ply_faces = "element face 1\nproperty list uchar int vertex_indices\n";

std::string binary_stl(std::uint32_t claimed, std::size_t present) {
  std::string bytes(84 + 50 * present, '\0');
  std::memcpy(bytes.data() + 80, &claimed, 4);
  for (std::size_t i = 0; i < present; ++i) {
    float corners[9] = {0, 0, 0, 1, 0, 0, 0, 1, static_cast<float>(i)};
    std::memcpy(bytes.data() + 84 + 50 * i + 12, corners, 36);
  }
  return bytes;
}

// Three corners and an accessor over them, in base64; `more` and `primitive` vary the document.
std::string gltf_of(
    const std::string& primitive, const std::string& nodes = R"([{"mesh":0}])",
    const std::string& uri = "data:;base64,AAAAAAAAAAAAAAAAAACAPwAAAAAAAAAAAAAAAAAAgD8AAAAA") {
  return R"({"asset":{"version":"2.0"},"scene":0,"scenes":[{"nodes":[0]}],"nodes":)" + nodes +
         R"(,"meshes":[{"primitives":[)" + primitive +
         R"(]}],"accessors":[{"bufferView":0,"componentType":5126,"count":3,"type":"VEC3"}],)"
         R"("bufferViews":[{"buffer":0,"byteLength":36}],"buffers":[{"byteLength":36,"uri":")" +
         uri + "\"}]}";
}
const std::string triangle = R"({"attributes":{"POSITION":0}})";

TEST(MeshFormats, ObjTakesSlashesRelativeIndicesContinuationsAndIgnoresTheRest) {
  Mesh mesh = decoded("# c\r\nmtllib a\r\n" + square_obj +
                      "vt 0 0\nvn 0 0 1\nf 1/1/1 2//1 3/1\r\nf -4 -2 \\\n -1 # end\nl 1 2 3\np 1\n"
                      "f 1 2\nv 5 5 5 1.0 0.1 0.2 0.3\nf 7 6 5\nv +1e1 .5 -2.\nv 1 2 3");
  EXPECT_EQ(mesh.faces, (Faces{{0, 1, 2}, {0, 2, 3}, {6, 5, 4}}));
  EXPECT_EQ(mesh.counts.other_elements, 3);
  EXPECT_EQ(mesh.vertices[5], (std::array<float, 3>{10, 0.5, -2}));
}

TEST(MeshFormats, NumbersAreRoundedAsPythonRoundsThem) {
  std::vector<std::string> texts{"0.1",
                                 "1e22",
                                 "1e23",
                                 "-7.2057594037927933e16",
                                 "3.4028235e38",
                                 "1e-45",
                                 "1e-400",
                                 "0.30000000000000004",
                                 "123456789012345678901",
                                 "9007199254740993",
                                 "1e-7",
                                 "5.",
                                 ".5",
                                 "-0",
                                 "00012.50",
                                 "1E+2"};
  std::string list;
  for (const auto& text : texts) list += "'" + text + "',";
  std::istringstream expected(run_python("import numpy as np\nfor t in [" + list +
                                         "]: print(np.float32(float(t)).view(np.uint32))\n"));
  for (const auto& text : texts) {
    Mesh mesh = decoded("v " + text + " 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n");
    std::uint32_t bits = 0, want = 0;
    std::memcpy(&bits, mesh.vertices.at(0).data(), 4);
    ASSERT_TRUE(expected >> want);
    EXPECT_EQ(bits, want) << text;
  }
}

TEST(MeshFormats, PlyReadsElementsInAnyOrderAndTriangleStrips) {
  Mesh mesh = decoded(ply_of(
      "element junk 2\nproperty list uchar int a\nproperty int b\n" + ply_faces + ply_vertices,
      "2 7 8 9\n0 4\n4 0 1 2 3\n0 0 0\n1 0 0\n1 1 0\n0 1 0"));
  EXPECT_EQ(mesh.faces, (Faces{{0, 1, 2}, {0, 2, 3}}));
  mesh =
      decoded(ply_of(ply_vertices + "element tristrips 1\nproperty list int int vertex_indices\n",
                     "0 0 0\n1 0 0\n1 1 0\n0 1 0\n8 0 1 2 3 -1 3 2 1"));
  EXPECT_EQ(mesh.faces, (Faces{{0, 1, 2}, {2, 1, 3}, {3, 2, 1}}));
}

TEST(MeshFormats, OffTakesColoursCommentsAndCountsGluedToTheKeyword) {
  std::string body = "0 0 0\n1 0 0 # c\n1 1 0\n\n# c\n0 1 0\n4 0 1 2 3 255 0 0\n";
  for (const char* start : {"OFF\n4 1 0\n", "OFF 4 1 0\n", "OFF4 1 0\n", "# a\nCOFF\n4 1\n"}) {
    EXPECT_EQ(decoded(start + body).faces, (Faces{{0, 1, 2}, {0, 2, 3}})) << start;
  }
  MeshOptions hinted = untouched();
  hinted.hint = MeshFormat::off;
  EXPECT_EQ(decoded("4 1 0\n" + body, hinted).faces.size(), 2U);
}

TEST(MeshFormats, BinaryStlIsKnownByItsSizeEvenIfItSaysSolid) {
  std::string bytes = binary_stl(3, 3);
  std::memcpy(bytes.data(), "solid facet", 11);
  EXPECT_EQ(decoded(bytes).faces.size(), 3U);
  EXPECT_EQ(sniff_mesh(std::as_bytes(std::span(bytes))), MeshFormat::stl);
}

TEST(MeshFormats, GltfAppliesNodesAndTurnsMirroredFaces) {
  Mesh mesh = decoded(gltf_of(triangle, R"([{"children":[1],"translation":[0,0,5]},)"
                                        R"({"mesh":0,"scale":[-2,1,1]}])"));
  EXPECT_EQ(mesh.vertices[1], (std::array<float, 3>{-2, 0, 5}));
  EXPECT_EQ(mesh.faces, (Faces{{0, 2, 1}}));
  mesh = decoded(
      gltf_of(triangle, R"([{"mesh":0,"rotation":[0,0,0.7071067811865476,0.7071067811865476]}])"));
  EXPECT_NEAR(mesh.vertices[1][1], 1, 1e-6);
  EXPECT_EQ(decoded(gltf_of(triangle + R"(,{"mode":1,"attributes":{}})")).counts.other_elements, 1);
}

TEST(MeshFormats, GltfReadsBuffersOnlyFromItsOwnFolder) {
  TemporaryFolder folder;
  std::filesystem::create_directory(folder / "in");
  std::string bytes(36, '\0');
  bytes[15] = bytes[31] = 0x3F;
  std::ofstream(folder / "in/a b.bin") << bytes;
  std::ofstream(folder / "secret.bin") << bytes;
  std::filesystem::create_symlink(folder / "secret.bin", folder / "in/link.bin");
  MeshOptions options = untouched();
  auto message = [&](const std::string& uri) {
    return message_of(gltf_of(triangle, R"([{"mesh":0}])", uri), options);
  };
  EXPECT_NE(message("a%20b.bin").find("no folder was given"), std::string::npos);
  options.folder = folder / "in";
  EXPECT_EQ(message("a%20b.bin"), "ok");
  EXPECT_EQ(message("./a b.bin"), "ok");
  for (const std::string& uri :
       {std::string("../secret.bin"), std::string("%2e%2e/secret.bin"), std::string("link.bin"),
        (folder / "secret.bin").string(), std::string("x/../../secret.bin"), std::string("..")}) {
    EXPECT_NE(message(uri).find("lies outside"), std::string::npos) << uri << message(uri);
  }
  EXPECT_NE(message("file:///etc/passwd").find("address outside"), std::string::npos);
  EXPECT_NE(message("none.bin").find("missing"), std::string::npos);
}

TEST(MeshFormats, LimitsHoldAtTheLimitAndOneBeyond) {
  std::string faces = "f 1 2 3\nf 1 3 4\n";
  std::vector<std::string> files{
      square_obj + faces,
      ply_of(ply_vertices + "element face 2\nproperty list uchar int vertex_indices\n",
             "0 0 0\n1 0 0\n1 1 0\n0 1 0\n3 0 1 2\n3 0 2 3"),
      "OFF\n4 2 0\n0 0 0\n1 0 0\n1 1 0\n0 1 0\n3 0 1 2\n3 0 2 3\n", square_obj + "f 1 2 3 4\n",
      ply_of(ply_vertices + ply_faces, "0 0 0\n1 0 0\n1 1 0\n0 1 0\n4 0 1 2 3")};
  for (const std::string& file : files) {
    EXPECT_EQ(message_of(file, {.limits = {.vertices = 4, .faces = 2}}), "ok") << file;
    EXPECT_NE(message_of(file, {.limits = {.vertices = 3, .faces = 2}}).find("limits.vertices"),
              std::string::npos);
    EXPECT_NE(message_of(file, {.limits = {.vertices = 4, .faces = 1}}).find("limits.faces"),
              std::string::npos);
  }
  EXPECT_EQ(message_of(binary_stl(2, 2), {.limits = {.vertices = 6, .faces = 2}}), "ok");
  EXPECT_NE(message_of(binary_stl(2, 2), {.limits = {.vertices = 6, .faces = 1}}), "ok");
  EXPECT_NE(message_of(binary_stl(2, 2), {.limits = {.vertices = 5, .faces = 2}}), "ok");
  EXPECT_EQ(message_of(gltf_of(triangle), {.limits = {.vertices = 3, .faces = 1}}), "ok");
  EXPECT_NE(message_of(gltf_of(triangle), {.limits = {.vertices = 2, .faces = 1}}), "ok");
  EXPECT_NE(message_of(gltf_of(triangle), {.limits = {.vertices = 3, .faces = 0}}), "ok");
}

// Every message, as a table in the output: what a user gets to read.
TEST(MeshFormats, ErrorsSayWhatIsWrong) {
  std::string solid = "solid a\nfacet normal 0 0 1\nouter loop\nvertex 0 0 0\n";
  std::vector<std::pair<std::string, std::string>> table{
      {"", "the file is empty"},
      {"\xFF\xFEv\1", "text in UTF-16"},
      {"hello", "not a mesh that is known"},
      {square_obj, "has no faces"},
      {"v 1 2\nf 1 1 1\n", "line 1: a vertex needs three numbers"},
      {square_obj + "f 1 2 x\n", "line 5: a face has a corner that is no index"},
      {square_obj + "f 1 2 -9\n", "counts back beyond the first vertex"},
      {square_obj + "f 1 2 9\n", "triangle 0 has vertex 8, but there are 4 vertices"},
      {"v nan 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n", "vertex 0 is not finite"},
      {"v 0 0 0\nv 1 0 0\nf 1 2 1\n", "no face is left"},
      {"ply\nformat ascii 1.0\n", "truncated: its header has no end"},
      {"ply\nformat xml 1.0\nend_header\n", "header line 2: a format that PLY does not know"},
      {ply_of(ply_faces, "3 0 1 2"), "triangle 0 has vertex"},
      {ply_of("element vertex 9999999\nproperty float x\nproperty float y\nproperty float z\n",
              "0"),
       "truncated: its header promises 9999999 of element vertex"},
      {ply_of("element vertex 99999999\nproperty float x\n", "0"),
       "more than the 10000000 allowed"},
      {ply_of(ply_vertices, "0 0 0\n1 0 0\n1 1 0\n0 1 z"), "cannot read vertex 3"},
      {binary_stl(5, 2).substr(0, 120), "truncated: its header promises 5 faces"},
      {solid, "truncated: ends within a facet"},
      {solid + "vertex 0 0\n", "line 5: a vertex needs three numbers"},
      {"OFF\n3 9 0\n0 0 0\n", "truncated: its header promises 3 vertices"},
      {"OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1\n# more\n", "cannot read the corners of face 0"},
      {"OFF BINARY\n", "binary OFF is not read"},
      {"4OFF\n1 1 1\n", "a kind of OFF that is not read"},
      {"{", "its JSON is malformed"},
      {R"({"asset":{"version":"1.0"}})", "glTF 1.0 is not read"},
      {R"({"asset":{"version":"2.0"},"extensionsRequired":["KHR_draco_mesh_compression"]})",
       "compressed with KHR_draco_mesh_compression"},
      {gltf_of(triangle, R"([{"children":[0]}])"), "nodes[0] is reached twice"},
      {gltf_of(R"({"attributes":{"POSITION":7}})"), "refers to accessors[7], but has 1"},
      {gltf_of(triangle, R"([{"mesh":0}])", "data:;base64,AAAA"),
       "promises 36 bytes, but 3 are there"},
      {"glTF\x01\0\0\0", "truncated: no room for a GLB header"},
  };
  for (const auto& [file, expected] : table) {
    MeshOptions options;
    if (file.starts_with("4OFF")) options.hint = MeshFormat::off;
    if (expected.ends_with("5 faces")) options.hint = MeshFormat::stl;
    std::string message = message_of(file, options);
    std::printf("    %s\n", message.c_str());
    EXPECT_NE(message.find(expected), std::string::npos) << message << "\nexpected: " << expected;
  }
}

TEST(MeshFormats, ContentWinsOverTheNameWhereItIsUnmistakable) {
  EXPECT_EQ(mesh_format_of("a/b.c/chair.OBJ"), MeshFormat::obj);
  EXPECT_EQ(mesh_format_of("x.glb"), MeshFormat::gltf);
  EXPECT_EQ(mesh_format_of("x.txt"), MeshFormat::unknown);
  std::string text = "ply\nformat";
  EXPECT_EQ(sniff_mesh(std::as_bytes(std::span(text)), MeshFormat::obj), MeshFormat::ply);
  text = "\xEF\xBB\xBF# c\n  v 0 0 0\n";
  EXPECT_EQ(sniff_mesh(std::as_bytes(std::span(text))), MeshFormat::obj);
}

}  // namespace
}  // namespace millrace
