// Meshes on their way into a mesh trainer: counted, bucketed, augmented, with texts and embeddings,
// whatever is wrong with some of them.
#include "tests/datasets/media_samples.h"
#include "tests/reference.h"

#include <millrace/datasets/compose/cached.h>
#include <millrace/datasets/mesh/face_edge_cache.h>
#include <millrace/datasets/mesh/mesh_data.h>
#include <millrace/pipeline/loader/loader.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <sstream>
#include <thread>

#include <gtest/gtest.h>

namespace millrace {
namespace {

namespace fs = std::filesystem;

std::string message_of(const std::function<void()>& function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

// Fans of 2 to 2 + count - 1 triangles: mesh_00.obj ... with texts beside.
void write_meshes(const TemporaryFolder& folder, int count) {
  for (int i = 0; i < count; ++i) {
    const std::string stem = (i < 10 ? "mesh_0" : "mesh_") + std::to_string(i);
    write_mesh(folder / (stem + ".obj"), i);
    write_file(folder / (stem + ".txt"), "fan " + std::to_string(i));
  }
}

std::int64_t faces_of(const MeshFolder& meshes, std::int64_t i) {
  Sample sample(meshes.schema());
  EXPECT_TRUE(meshes.load(i, {.index = i}, sample).ok());
  return sample["faces"].shape()[0];
}

TEST(MeshLengths, AreTheFacesAndAreRememberedAsLongAsTheFileIsTheSame) {
  TemporaryFolder folder, cache;
  write_meshes(folder, 12);
  write_file(folder / "bad.obj", "v 0 0 zero\n");
  const MeshFolderOptions options{.count_faces = true, .cache = cache / "c"};
  const MeshFolder meshes(folder.path(), options);
  ASSERT_EQ(meshes.size(), 13);
  EXPECT_EQ(meshes.length(0), 0);  // bad.obj
  for (std::int64_t i = 1; i < 13; ++i) EXPECT_EQ(meshes.length(i), faces_of(meshes, i));

  // A file of the same size and time is not looked into again.
  const fs::path file = folder / "mesh_05.obj";
  const auto time = fs::last_write_time(file);
  const std::string content = read_whole(file);
  write_file(file, std::string(content.size(), ' '));
  fs::last_write_time(file, time);
  EXPECT_EQ(MeshFolder(folder.path(), options).length(6), meshes.length(6));
  // One that was touched is.
  fs::last_write_time(file, time + std::chrono::seconds(2));
  EXPECT_EQ(MeshFolder(folder.path(), options).length(6), 0);
  write_file(file, content);
  // What remembers may be damaged at any byte.
  for (const auto& entry : fs::directory_iterator(cache / "c")) {
    if (entry.path().extension() != ".faces") continue;
    const std::string whole = read_whole(entry.path());
    for (std::size_t at : {std::size_t{0}, std::size_t{20}, whole.size() / 2, whole.size() - 2}) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] + 1);
      write_file(entry.path(), damaged);
      EXPECT_EQ(MeshFolder(folder.path(), options).length(12), meshes.length(12));
    }
  }
}

TEST(MeshLengths, LeaveOutWhatIsTooLongWithItsNameOrCallItBad) {
  TemporaryFolder folder;
  write_meshes(folder, 10);  // 2 to 11 faces
  const MeshFolder kept(folder.path(), {.max_faces = 6, .over_long = OverLong::leave_out});
  EXPECT_EQ(kept.size(), 5);
  EXPECT_EQ(kept.listed(), 10);
  const auto left_out = kept.left_out();
  ASSERT_EQ(left_out.size(), 5U);
  EXPECT_TRUE(left_out[4].source.ends_with("mesh_09.obj"));
  EXPECT_EQ(left_out[4].reason, "it has 11 faces, more than max_faces (6)");
  EXPECT_NE(message_of([&] {
              MeshFolder(folder.path(), {.max_faces = 1, .over_long = OverLong::leave_out});
            }).find("all 10 meshes have more faces than max_faces (1)"),
            std::string::npos);

  for (bool cached : {false, true}) {
    fs::path source = folder.path();
    TemporaryFolder other;
    if (cached) {
      source = other / "meshes.arrow";
      Cached(MeshFolder(folder.path()), {.file = source});
    }
    const MeshData skipped = open_meshes(source, {.max_faces = 6});
    EXPECT_EQ(skipped.plain->size(), 5);
    EXPECT_EQ(skipped.plain->left_out().size(), 5U);
    const MeshData refused = open_meshes(source, {.max_faces = 6, .over_long = OverLong::error});
    ASSERT_EQ(refused.plain->size(), 10);
    Sample sample(refused.plain->schema());
    const Status status = refused.plain->load(9, {.index = 9}, sample);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().reason(), "it has 11 faces, more than max_faces (6)");
  }
}

std::vector<std::array<std::int64_t, 3>> strip(std::int64_t faces) {
  std::vector<std::array<std::int64_t, 3>> result;
  for (std::int64_t i = 0; i < faces; ++i) result.push_back({i, i + 1, i + 2});
  return result;
}

TEST(FaceEdgeCaching, GivesWhatIsComputedAndComputesItOnce) {
  TemporaryFolder folder;
  const auto faces = strip(50);
  std::vector<std::array<std::int64_t, 2>> expected, pairs;
  ASSERT_TRUE(face_edges(faces, {}, expected).ok());
  FaceEdgeCache cache(folder / "edges");
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(cache.find(faces, {}, pairs).ok());
    EXPECT_EQ(pairs, expected);
  }
  EXPECT_EQ(cache.computed(), 1);
  EXPECT_EQ(cache.found(), 2);
  // Another content, other options, another process.
  ASSERT_TRUE(cache.find(strip(51), {}, pairs).ok());
  EXPECT_NE(pairs, expected);
  ASSERT_TRUE(cache.find(faces, {.self_pairs = false}, pairs).ok());
  EXPECT_EQ(pairs.size(), expected.size() - 50);
  EXPECT_EQ(cache.computed(), 3);
  FaceEdgeCache other(folder / "edges");
  ASSERT_TRUE(other.find(faces, {}, pairs).ok());
  EXPECT_EQ(pairs, expected);
  EXPECT_EQ(other.found(), 1);
  EXPECT_FALSE(other.find(faces, {.max_pairs = 3}, pairs).ok());
}

TEST(FaceEdgeCaching, TrustsNoDamagedFile) {
  TemporaryFolder folder;
  const auto faces = strip(20);
  std::vector<std::array<std::int64_t, 2>> expected, pairs;
  FaceEdgeCache cache(folder.path());
  ASSERT_TRUE(cache.find(faces, {}, expected).ok());
  const fs::path file = fs::directory_iterator(folder.path())->path();
  const std::string whole = read_whole(file);
  for (std::size_t at = 0; at < whole.size(); at += 7) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    write_file(file, damaged);
    ASSERT_TRUE(cache.find(faces, {}, pairs).ok());
    ASSERT_EQ(pairs, expected) << at;
  }
  for (std::size_t size : {std::size_t{0}, std::size_t{10}, whole.size() - 1}) {
    write_file(file, whole.substr(0, size));
    ASSERT_TRUE(cache.find(faces, {}, pairs).ok());
    ASSERT_EQ(pairs, expected);
  }
  EXPECT_EQ(cache.found(), 0);
  EXPECT_EQ(read_whole(file), whole);
}

TEST(FaceEdgeCaching, ServesManyThreadsAtOnce) {
  TemporaryFolder folder;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      FaceEdgeCache cache(folder.path());  // as another process would have
      std::vector<std::array<std::int64_t, 2>> pairs;
      for (int i = 0; i < 40; ++i) {
        ASSERT_TRUE(cache.find(strip(10 + i % 4), {}, pairs).ok());
        ASSERT_EQ(pairs.size(), static_cast<std::size_t>(3 * (10 + i % 4) - 2));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 4);
}

std::vector<float> vertices_of(const Dataset& data, std::int64_t i, std::int64_t epoch = 0) {
  Sample sample(data.schema());
  const Status status = data.load(i, {.epoch = epoch, .index = i}, sample);
  EXPECT_TRUE(status.ok());
  const auto values = sample["vertices"].as<const float>();
  return {values.begin(), values.end()};
}

TEST(MeshAugmentation, IsKeyedAndComesBeforeTheOrder) {
  TemporaryFolder folder;
  write_meshes(folder, 4);
  const MeshData meshes = open_meshes(
      folder.path(),
      {.augment = {.scale_low = 0.75, .scale_high = 1.25, .rotation = 180, .jitter = 0.05}});
  std::set<std::vector<float>> seen;
  for (std::int64_t epoch = 0; epoch < 10; ++epoch) {
    const auto now = vertices_of(*meshes.augmented, 3, epoch);
    EXPECT_EQ(now, vertices_of(*meshes.augmented, 3, epoch));
    seen.insert(now);
    for (float x : now) EXPECT_LE(std::abs(x), 1.0F);
    // By z, then y, then x; and the edges are those of the faces as they stand now.
    for (std::size_t i = 3; i < now.size(); i += 3) {
      EXPECT_LE(std::tie(now[i - 1], now[i - 2], now[i - 3]),
                std::tie(now[i + 2], now[i + 1], now[i]));
    }
    Sample sample(meshes.augmented->schema());
    ASSERT_TRUE(meshes.augmented->load(3, {.epoch = epoch, .index = 3}, sample).ok());
    const auto faces = sample["faces"].as<const std::int64_t>();
    std::vector<std::array<std::int64_t, 3>> rows;
    for (std::size_t i = 0; i < faces.size(); i += 3)
      rows.push_back({faces[i], faces[i + 1], faces[i + 2]});
    EXPECT_TRUE(std::ranges::is_sorted(rows));
    std::vector<std::array<std::int64_t, 2>> pairs;
    ASSERT_TRUE(face_edges(rows, {}, pairs).ok());
    const auto edges = sample["face_edges"].as<const std::int64_t>();
    EXPECT_TRUE(std::equal(edges.begin(), edges.end(), pairs[0].data()));
  }
  EXPECT_EQ(seen.size(), 10U);
  const MeshFolder files(folder.path());
  EXPECT_EQ(vertices_of(*meshes.plain, 3, 7), vertices_of(files, 3));
}

TEST(MeshAugmentation, TurnsStretchesAndShakesByWhatIsAskedFor) {
  Mesh mesh;
  mesh.vertices = {{0.5F, 0.25F, 0}, {0, 0.25F, 0.5F}, {-0.5F, 0.25F, 0}};
  for (std::int64_t i = 0; i < 20; ++i) {
    Mesh turned = mesh;
    Random random(1, 0, i, "augment");
    augment_mesh({.rotation = 30}, random, turned);
    const float angle = std::atan2(turned.vertices[0][2], turned.vertices[0][0]);
    EXPECT_LE(std::abs(angle), 30.01 * 3.14159265 / 180);
    EXPECT_NEAR(std::hypot(turned.vertices[1][0], turned.vertices[1][2]), 0.5, 1e-6);
    EXPECT_EQ(turned.vertices[1][1], 0.25F);
    Mesh shaken = mesh, large = mesh;
    augment_mesh({.jitter = 0.01}, random, shaken);
    for (std::size_t k = 0; k < 3; ++k) {
      EXPECT_NEAR(shaken.vertices[0][k], mesh.vertices[0][k], 0.01001);
    }
    augment_mesh({.scale_low = 4, .scale_high = 4}, random, large);
    EXPECT_NEAR(large.vertices[0][0], 1, 1e-6);  // 2, made to fit again
    EXPECT_NEAR(large.vertices[0][1], 0.5, 1e-6);
  }
  EXPECT_THROW((MeshAugmentation{.scale_low = 2, .scale_high = 1}.check()), Error);
  EXPECT_THROW((MeshAugmentation{.rotation = -1}.check()), Error);
  EXPECT_THROW((MeshAugmentation{.jitter = NAN}.check()), Error);
}

TEST(MeshTrainerData, HasTheFieldsThatAreNamedAndSaysWhichItCannotHave) {
  TemporaryFolder folder, silent;
  write_meshes(folder, 6);
  write_mesh(silent / "a.obj", 3);
  const MeshData meshes =
      open_meshes(folder.path(), {.data_kwargs = {"vertices", "faces", "face_edges", "texts"}});
  Loader loader(meshes.plain, {.batch_size = 6, .threads = 1, .collate = meshes.collate});
  const auto batch = loader.next();
  EXPECT_EQ((*batch)["vertices"].shape(), (Shape{6, 9, 3}));
  EXPECT_EQ((*batch)["faces"].shape(), (Shape{6, 7, 3}));
  EXPECT_EQ((*batch)["faces"].row(0).as<const std::int64_t>()[3 * 6], -1);
  EXPECT_EQ((*batch)["face_edges"].row(0).as<const std::int64_t>()[2 * 6], -1);
  EXPECT_EQ((*batch)["vertices"].row(0).as<const float>()[3 * 8], 0);
  EXPECT_EQ(batch->texts("texts")[3], "fan 3");
  EXPECT_GT(batch->padding().value_or(0), 0.2);

  auto refusal = [&](const fs::path& from, std::vector<std::string> names) {
    return message_of([&] { open_meshes(from, {.data_kwargs = std::move(names)}); });
  };
  EXPECT_NE(refusal(folder.path(), {"vertices", "faces", "colours"}).find("there is no 'colours'"),
            std::string::npos);
  EXPECT_NE(refusal(folder.path(), {"faces"}).find("a mesh needs 'vertices'"), std::string::npos);
  EXPECT_NE(refusal(folder.path(), {"vertices", "faces", "faces"}).find("named twice"),
            std::string::npos);
  EXPECT_NE(refusal(silent.path(), {"vertices", "faces", "texts"}).find("no mesh has a text"),
            std::string::npos);
  EXPECT_NE(refusal(folder.path(), {"vertices", "faces", "text_embeds"}).find("text_embeds"),
            std::string::npos);
}

TEST(MeshTrainerData, OfACacheIsThatOfTheFolder) {
  TemporaryFolder folder, caches;
  write_meshes(folder, 9);
  for (bool edges : {false, true}) {
    const fs::path cache = caches / (edges ? "with.arrow" : "without.arrow");
    Cached(MeshFolder(folder.path(), {.face_edges = edges, .text = TextBeside::optional}),
           {.file = cache});
    const MeshDataOptions options{.data_kwargs = {"vertices", "faces", "face_edges", "texts"},
                                  .augment = {.rotation = 90},
                                  .cache = caches / "edges"};
    const MeshData from_files = open_meshes(folder.path(), options);
    const MeshData from_cache = open_meshes(cache, options);
    for (std::int64_t i = 0; i < 9; ++i) {
      EXPECT_EQ(from_cache.plain->length(i), i + 2);
      EXPECT_EQ(from_files.augmented->length(i), i + 2);
      for (bool augmented : {false, true}) {
        Sample a(from_files.plain->schema()), b(from_cache.plain->schema());
        const LoadContext context{.epoch = 4, .index = i};
        ASSERT_TRUE(
            (augmented ? from_files.augmented : from_files.plain)->load(i, context, a).ok());
        ASSERT_TRUE(
            (augmented ? from_cache.augmented : from_cache.plain)->load(i, context, b).ok());
        for (const char* name : {"vertices", "faces", "face_edges", "texts"}) {
          const Array &x = a[name], &y = b[name];
          ASSERT_EQ(x.shape(), y.shape());
          EXPECT_TRUE(std::equal(x.data(), x.data() + x.bytes(), y.data())) << name;
        }
      }
    }
  }
}

TEST(MeshTrainerData, FindsTheEmbeddingsOfTextsThatPythonWrote) {
  TemporaryFolder folder, embeds;
  write_meshes(folder, 4);
  run_python(R"(
import sys, numpy as np, pyarrow as pa
root = sys.argv[1]
np.save(root + '/flat.npy', np.arange(4 * 5, dtype=np.float32).reshape(4, 5))
np.save(root + '/short.npy', np.zeros((3, 5), np.float32))
np.save(root + '/wide.npy', np.zeros((4, 5), np.float64))
rows = [[[float(10 * i + t)] * 5 for t in range(i + 1)] for i in range(4)]
def write(name, order, names):
    table = pa.table({'source': [names[i] for i in order],
                      'text_embeds': pa.array([rows[i] for i in order], pa.list_(pa.list_(pa.float32(), 5)))})
    with pa.OSFile(f'{root}/{name}.arrow', 'wb') as out, pa.ipc.new_file(out, table.schema) as file:
        file.write_table(table)
write('full', [2, 0, 3, 1], [f'mesh_0{i}.obj' for i in range(4)])
write('stems', [3, 2, 1, 0], [f'mesh_0{i}.txt' for i in range(4)])
write('missing', [2, 0, 3], [f'mesh_0{i}.obj' for i in range(4)])
)",
             embeds.path().string());
  MeshDataOptions options{.data_kwargs = {"vertices", "faces", "text_embeds"}};
  for (const char* name : {"full.arrow", "stems.arrow"}) {
    options.text_embeds = embeds / name;
    const MeshData meshes = open_meshes(folder.path(), options);
    Loader loader(meshes.plain, {.batch_size = 4, .threads = 1, .collate = meshes.collate});
    const auto batch = loader.next();
    const Array values = (*batch)["text_embeds"];
    ASSERT_EQ(values.shape(), (Shape{4, 4, 5}));
    EXPECT_EQ(values.row(3).as<const float>()[3 * 5], 33);
    EXPECT_EQ(values.row(1).as<const float>()[5], 11);
    EXPECT_EQ(values.row(1).as<const float>()[10], 0);
    EXPECT_EQ(batch->lengths("text_embeds").as<const std::int64_t>()[2], 3);
  }
  options.text_embeds = embeds / "flat.npy";
  options.max_faces = 4;  // the last mesh goes, its row stays unused
  const MeshData meshes = open_meshes(folder.path(), options);
  Sample sample(meshes.plain->schema());
  ASSERT_TRUE(meshes.plain->load(2, {.index = 2}, sample).ok());
  EXPECT_EQ(sample["text_embeds"].shape(), (Shape{1, 5}));
  EXPECT_EQ(sample["text_embeds"].as<const float>()[0], 10);
  auto refusal = [&](const char* name) {
    options.text_embeds = embeds / name;
    return message_of([&] { open_meshes(folder.path(), options); });
  };
  EXPECT_NE(refusal("short.npy").find("it has 3 rows, but there are 4 meshes"), std::string::npos);
  EXPECT_NE(refusal("wide.npy").find("must be float32"), std::string::npos);
  EXPECT_NE(refusal("missing.arrow").find("no row has the source 'mesh_01.obj'"),
            std::string::npos);
}

// Whatever is wrong with a mesh, the others are seen, each exactly once, and the ledger says what.
TEST(MeshTrainerData, GetsPastEveryKindOfBadMesh) {
  TemporaryFolder folder;
  write_meshes(folder, 24);
  write_file(folder / "bad_empty.obj", "");
  write_file(folder / "bad_points.obj", "v 0 0 0\nv 1 0 0\n");
  write_file(folder / "bad_nan.obj", "v 0 0 0\nv nan 0 0\nv 0 1 0\nf 1 2 3\n");
  write_file(folder / "bad_line.obj", "v 0 0 0\nv 1 0 0\nv 2 0 0\nf 1 1 2\n");
  write_file(folder / "odd_one.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n");
  std::string fan = "v 0 0 0\nv 0 0 1\n", soup;
  for (int i = 0; i < 60; ++i) {  // 60 faces along one edge
    fan += "v " + std::to_string(std::cos(i)) + " " + std::to_string(std::sin(i)) + " 0\n";
    fan += "f 1 2 " + std::to_string(i + 3) + "\n";
  }
  for (int i = 0; i < 40; ++i) {  // triangles that touch nowhere
    for (int k = 0; k < 3; ++k) {
      soup += "v " + std::to_string(i) + " " + std::to_string(k * i % 7) + " " + std::to_string(k) +
              "\n";
    }
    soup += "f -1 -2 -3\n";
  }
  write_file(folder / "odd_non_manifold.obj", fan);
  write_file(folder / "odd_soup.obj", soup);
  const MeshData meshes =
      open_meshes(folder.path(), {.data_kwargs = {"vertices", "faces", "face_edges"}});
  EXPECT_EQ(meshes.plain->size(), 31);
  Loader loader(meshes.plain, {.batch_size = 4,
                               .shuffle = true,
                               .threads = 2,
                               .bucket = {.window = 4},
                               .collate = meshes.collate,
                               .errors = {.ledger = folder / "errors.jsonl"}});
  std::multiset<std::string> seen;
  std::map<std::string, std::int64_t> edges;
  for (const Batch& batch : loader) {
    for (std::size_t row = 0; row < static_cast<std::size_t>(batch.size()); ++row) {
      const std::string name = fs::path(meshes.plain->describe(batch.indices()[row])).filename();
      seen.insert(name);
      edges[name] = batch.lengths("face_edges").as<const std::int64_t>()[row];
    }
  }
  EXPECT_EQ(seen.size(), 31U);  // four of them in place of bad ones
  EXPECT_EQ(loader.ledger().bad_samples(), 4);
  EXPECT_EQ(edges["odd_one.obj"], 1);
  EXPECT_EQ(edges["odd_non_manifold.obj"], 60 * 60);
  EXPECT_EQ(edges["odd_soup.obj"], 40);
  std::set<std::string> different(seen.begin(), seen.end());
  EXPECT_EQ(different.size(), 27U);
  const std::string ledger = read_whole(folder / "errors.jsonl");
  for (const char* text : {"bad_empty.obj", "the file is empty", "bad_points.obj", "bad_nan.obj",
                           "not finite", "bad_line.obj", "degenerate"}) {
    EXPECT_NE(ledger.find(text), std::string::npos) << text << "\n" << ledger;
  }
}

}  // namespace
}  // namespace millrace
