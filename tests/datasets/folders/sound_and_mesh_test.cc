#include "tests/datasets/media_samples.h"
#include "tests/reference.h"

#include <millrace/datasets/compose/collations.h>
#include <millrace/datasets/folders/audio_folder.h>
#include <millrace/datasets/folders/mesh_folder.h>
#include <millrace/pipeline/loader/loader.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

namespace millrace {
namespace {

std::vector<float> sound(const Dataset& data, std::int64_t index, std::int64_t epoch = 0) {
  Sample sample(data.schema());
  Status status = data.load(index, {.epoch = epoch, .index = index}, sample);
  EXPECT_TRUE(status.ok()) << status.error().what();
  if (!status.ok()) return {};
  auto values = sample["audio"].as<float>();
  return {values.begin(), values.end()};
}

// Two channels of noise, written by soundfile, whose first is read back as a reference.
class AudioFolderTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    run_python(R"(
import sys, numpy as np, soundfile as sf
root, rng = sys.argv[1], np.random.default_rng(3)
for i, name in enumerate(['a.flac', 'b.WAV', 'c.ogg']):
    sf.write(f'{root}/{name}', rng.uniform(-0.5, 0.5, (40000 + 5000 * i, 2)), 16000)
    data, _ = sf.read(f'{root}/{name}', dtype='float32')
    data.tofile(f'{root}/{name}.raw')
)",
               folder_->path().string());
  }
  static void TearDownTestSuite() { delete folder_; }
  // [samples][2]
  static std::vector<float> soundfile(const std::string& name) {
    std::string raw = read_whole(*folder_ / (name + ".raw"));
    std::vector<float> values(raw.size() / 4);
    std::memcpy(values.data(), raw.data(), raw.size());
    return values;
  }
  static TemporaryFolder* folder_;
};
TemporaryFolder* AudioFolderTest::folder_ = nullptr;

TEST_F(AudioFolderTest, HasSoundfilesSamplesWholeAndByChannel) {
  AudioFolder stereo(folder_->path(), {.channels = 2});
  AudioFolder mono(folder_->path(), {});
  EXPECT_EQ(to_string(stereo.schema()), "audio float32 [2, -1], valid_samples int64 []");
  EXPECT_EQ(to_string(mono.schema()), "audio float32 [-1], valid_samples int64 []");
  const char* names[] = {"a.flac", "b.WAV", "c.ogg"};
  for (std::int64_t i = 0; i < 3; ++i) {
    auto expected = soundfile(names[i]);
    auto both = sound(stereo, i), one = sound(mono, i);
    ASSERT_EQ(both.size(), expected.size()) << names[i];
    std::size_t n = one.size();
    ASSERT_EQ(n * 2, both.size());
    float tolerance = i == 2 ? 2e-4F : 1e-6F;  // Vorbis decoders differ in the last bits
    for (std::size_t k = 0; k < n; ++k) {
      ASSERT_NEAR(both[k], expected[2 * k], tolerance) << names[i] << k;
      ASSERT_NEAR(both[n + k], expected[2 * k + 1], tolerance);
      // Mixed to the same loudness, as ffmpeg mixes: not to the mean.
      ASSERT_NEAR(one[k], (expected[2 * k] + expected[2 * k + 1]) * std::sqrt(0.5F), tolerance);
    }
  }
}

TEST_F(AudioFolderTest, TakesRandomWindowsThatArePartsOfTheWhole) {
  AudioFolder whole(folder_->path(), {});
  AudioFolder windows(folder_->path(), {.samples = 1000, .window = AudioWindow::random});
  auto all = sound(whole, 0);
  std::set<std::ptrdiff_t> starts;
  for (std::int64_t epoch = 0; epoch < 20; ++epoch) {
    auto part = sound(windows, 0, epoch);
    ASSERT_EQ(part.size(), 1000U);
    EXPECT_EQ(part, sound(windows, 0, epoch));
    auto at = std::search(all.begin(), all.end(), part.begin(), part.end());
    ASSERT_NE(at, all.end());
    starts.insert(at - all.begin());
  }
  EXPECT_GT(starts.size(), 15U);
}

TEST_F(AudioFolderTest, CutsWholesAndFillsWindowsWithSilence) {
  EXPECT_EQ(sound(AudioFolder(folder_->path(), {.max_samples = 100}), 0).size(), 100U);
  AudioFolder windows(folder_->path(), {.samples = 50'000});
  Sample sample(windows.schema());
  ASSERT_TRUE(windows.load(0, {}, sample).ok());
  EXPECT_EQ(sample["valid_samples"].as<std::int64_t>()[0], 40'000);
  EXPECT_EQ(sample["audio"].as<float>()[49'999], 0.0F);
}

TEST_F(AudioFolderTest, CollatesAlongTimeAndKeepsCaptionsWhole) {
  write_file(
      *folder_ / "table.csv",
      "caption,path\n\"a long caption, with a comma\",a.flac\n\"two\nlines \"\"q\"\"\",b.WAV\n"
      ",c.ogg\n");
  for (AudioLength length : {AudioLength::longest, AudioLength::shortest}) {
    AudioFolder songs(folder_->path(), {.channels = 2, .table = *folder_ / "table.csv"});
    Loader loader(
        songs, {.batch_size = 3, .threads = 1, .collate = collate_audio(songs.schema(), length)});
    auto batch = loader.next();
    EXPECT_EQ((*batch)["audio"].shape(),
              (Shape{3, 2, length == AudioLength::longest ? 50'000 : 40'000}));
    EXPECT_EQ(batch->texts("caption")[0], "a long caption, with a comma");
    EXPECT_EQ(batch->texts("caption")[1], "two\nlines \"q\"");
    EXPECT_EQ(batch->texts("caption")[2], "");
  }
}

TEST_F(AudioFolderTest, ReadsTablesAndTellsWhatDoesNotMatch) {
  write_file(*folder_ / "t.jsonl",
             "{\"file\": \"c.ogg\", \"text\": \"see\"}\n\n{\"text\": \"again\", \"file\": "
             "\"./c.ogg\"}\n{\"file\": \"../etc/x.wav\", \"text\": \"out\"}\n");
  AudioFolder songs(
      folder_->path(),
      {.table = *folder_ / "t.jsonl", .path_column = "file", .caption_column = "text"});
  ASSERT_EQ(songs.size(), 2);
  EXPECT_TRUE(songs.describe(0).ends_with("/c.ogg"));
  EXPECT_EQ(songs.left_out().size(), 3U);  // a line without a file, two files without a line
  auto fails = [&](const std::string& name, const std::string& text, const std::string& why) {
    write_file(*folder_ / name, text);
    try {
      AudioFolder(folder_->path(), {.table = *folder_ / name});
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(why), std::string::npos) << error.what();
    }
  };
  fails("1.csv", "path,text\na.flac,x\n", "line 1: there is no column \"caption\"");
  fails("2.csv", "path,caption\na.flac\n", "line 2: it has 1 cells");
  fails("3.csv", "path,caption\na.flac,\"x\n", "never closed");
  fails("4.jsonl", "{\"path\": \"a.flac\"}\n", "line 1: there is no \"caption\"");
  fails("5.jsonl", "{\"path\": \"a.flac\", \"caption\": 3}\n", "not a string");
  fails("6.jsonl", "[]\n", "not a JSON object");
  fails("7.csv", "path,caption\nnowhere.wav,x\n", "names no file");
}

TEST(MeshFolder, HasTrimeshsTrianglesAndTouchingFaces) {
  TemporaryFolder folder;
  run_python(R"(
import sys, trimesh
root = sys.argv[1]
trimesh.creation.box().export(f'{root}/box.stl')
trimesh.creation.icosphere(subdivisions=1).export(f'{root}/sphere.PLY')
trimesh.creation.cylinder(1, 2, sections=12).export(f'{root}/tube.glb')
trimesh.creation.torus(1, 0.3, major_sections=8, minor_sections=6).export(f'{root}/torus.off')
)",
             folder.path().string());
  write_file(folder / "box.txt", "a box");
  MeshFolder meshes(folder.path(), {.text = TextBeside::optional});
  ASSERT_EQ(meshes.size(), 4);
  std::istringstream expected(run_python(R"(
import sys, trimesh
for name in sorted(['box.stl', 'sphere.PLY', 'tube.glb', 'torus.off']):
    mesh = trimesh.load(f'{sys.argv[1]}/{name}', force='mesh', file_type=name.split('.')[1].lower())
    mesh.merge_vertices(merge_tex=True, merge_norm=True)
    # Each face with itself, and each pair that shares an edge in both orders.
    print(len(mesh.vertices), len(mesh.faces), len(mesh.faces) + 2 * len(mesh.face_adjacency))
)",
                                         folder.path().string()));
  Sample sample(meshes.schema());
  for (std::int64_t i = 0; i < 4; ++i) {
    sample.restart();
    Status status = meshes.load(i, {.index = i}, sample);
    ASSERT_TRUE(status.ok()) << status.error().what();
    std::int64_t vertices = 0, faces = 0, pairs = 0;
    expected >> vertices >> faces >> pairs;
    EXPECT_EQ(sample["vertices"].shape(), (Shape{vertices, 3})) << meshes.describe(i);
    EXPECT_EQ(sample["faces"].shape(), (Shape{faces, 3}));
    EXPECT_EQ(sample["face_edges"].shape(), (Shape{pairs, 2}));
    EXPECT_EQ(sample.text("caption"), i == 0 ? "a box" : "");
  }
  Loader loader(meshes,
                {.batch_size = 4, .threads = 1, .collate = collate_meshes(meshes.schema(), -1)});
  auto batch = loader.next();
  auto faces = (*batch)["faces"];
  EXPECT_EQ(faces.shape(), (Shape{4, 96, 3}));
  EXPECT_EQ(faces.row(0).as<std::int64_t>()[12 * 3], -1);
  EXPECT_EQ(batch->texts("caption")[0], "a box");
}

TEST(MeshFolder, RefusesMeshesOfTooManyFacesAndGoesWithoutEdges) {
  TemporaryFolder folder;
  write_mesh(folder / "small.obj", 2);
  write_mesh(folder / "big.obj", 30);
  MeshFolder meshes(folder.path(), {.max_faces = 10, .face_edges = false});
  EXPECT_EQ(meshes.schema().size(), 2);
  Sample sample(meshes.schema());
  Status status = meshes.load(0, {}, sample);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().reason().find("max_faces (10)"), std::string::npos);
  EXPECT_TRUE(meshes.load(1, {}, sample).ok());
}

TEST(MeshFolder, LeavesOutMeshesWithoutATextIfItIsRequired) {
  TemporaryFolder folder;
  write_mesh(folder / "a.obj", 2);
  write_mesh(folder / "b.obj", 2);
  write_file(folder / "b.txt", "bee");
  MeshFolder meshes(folder.path(), {.text = TextBeside::required});
  EXPECT_EQ(meshes.size(), 1);
  ASSERT_EQ(meshes.left_out().size(), 1U);
  EXPECT_TRUE(meshes.left_out()[0].source.ends_with("a.obj"));
}

}  // namespace
}  // namespace millrace
