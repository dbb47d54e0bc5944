#include "tests/decoders/mesh/mesh_helpers.h"

#include <millrace/decoders/mesh/face_edges.h>
#include <millrace/decoders/mesh/mesh_write.h>
#include <millrace/pipeline/base/random.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numbers>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace millrace {
namespace {

using Face = std::array<std::int64_t, 3>;
using Pair = std::array<std::int64_t, 2>;

// A field of side x side squares, two triangles each, with hills.
Mesh field(std::int64_t side) {
  Mesh mesh;
  for (std::int64_t y = 0; y <= side; ++y) {
    for (std::int64_t x = 0; x <= side; ++x) {
      auto u = static_cast<float>(x), v = static_cast<float>(y);
      mesh.vertices.push_back({u, v, std::sin(u) * std::cos(v)});
    }
  }
  for (std::int64_t y = 0; y < side; ++y) {
    for (std::int64_t x = 0; x < side; ++x) {
      std::int64_t a = y * (side + 1) + x, b = a + side + 1;
      mesh.faces.push_back({a, a + 1, b});
      mesh.faces.push_back({b, a + 1, b + 1});
    }
  }
  return mesh;
}

std::vector<Pair> brute_force(const std::vector<Face>& faces, bool self_pairs) {
  std::vector<Pair> pairs;
  auto size = static_cast<std::int64_t>(faces.size());
  for (std::int64_t i = 0; i < size; ++i) {
    for (std::int64_t j = 0; j < size; ++j) {
      const Face &a = faces[static_cast<std::size_t>(i)], &b = faces[static_cast<std::size_t>(j)];
      if (std::min({a[0], a[1], a[2]}) < 0 || std::min({b[0], b[1], b[2]}) < 0) continue;
      std::set<std::int64_t> corners(a.begin(), a.end());
      auto shared = std::count_if(corners.begin(), corners.end(), [&](std::int64_t corner) {
        return std::find(b.begin(), b.end(), corner) != b.end();
      });
      if (i == j ? self_pairs : shared >= 2) pairs.push_back({i, j});
    }
  }
  return pairs;
}

TEST(FaceEdges, EqualBruteForceOnRandomFacesWithEveryKindOfTrouble) {
  Random random(1, 2, 3, "faces");
  for (int round = 0; round < 300; ++round) {
    std::vector<Face> faces(random() % 60);
    std::uint32_t vertices = 3 + random() % 30;
    for (Face& face : faces) {
      for (std::int64_t& corner : face) corner = random() % vertices;
      if (random() % 16 == 0) face = {-1, -1, -1};
      if (random() % 8 == 0) face[1] = face[0];
    }
    for (bool self_pairs : {true, false}) {
      std::vector<Pair> pairs;
      ASSERT_TRUE(face_edges(faces, {.self_pairs = self_pairs}, pairs).ok());
      ASSERT_EQ(pairs, brute_force(faces, self_pairs));
    }
  }
}

TEST(FaceEdges, TimeAndMemoryAreLinear) {
  Mesh mesh = field(300);
  std::vector<Pair> pairs;
  auto start = std::chrono::steady_clock::now();
  ASSERT_TRUE(face_edges(mesh.faces, {}, pairs).ok());
  std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  // Each face has itself and three neighbours, less at the rim: one for each of its 4 * side edges.
  EXPECT_EQ(pairs.size(), mesh.faces.size() * 4 - 300 * 4);
  EXPECT_LT(seconds.count(), 10);
}

TEST(FaceEdges, RefusesWhatWouldTakeTooMuchMemory) {
  std::vector<Face> fan;
  for (std::int64_t i = 0; i < 2000; ++i) fan.push_back({0, 1, 2 + i});
  std::vector<Pair> pairs;
  EXPECT_TRUE(face_edges(fan, {.max_pairs = 4'000'000}, pairs).ok());
  EXPECT_EQ(pairs.size(), 4'000'000U);
  Status status = face_edges(fan, {.max_pairs = 3'999'999}, pairs);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(std::string(status.error().what()).find("the number of pairs 4000000"),
            std::string::npos);
  std::vector<Face> far{{0, 1, std::int64_t{1} << 60}};
  EXPECT_FALSE(face_edges(far, {}, pairs).ok());
  EXPECT_TRUE(face_edges({}, {}, pairs).ok());
}

TEST(MeshTidy, ConcavePolygonsAreCutWithoutOverlap) {
  // Stars of 3..40 points, in three planes and both senses: the shoelace formula is the reference.
  for (int points = 3; points <= 40; ++points) {
    for (int plane = 0; plane < 6; ++plane) {
      std::string text, face = "f";
      double area = 0;
      std::vector<std::array<double, 2>> ring;
      for (int i = 0; i < 2 * points; ++i) {
        double angle = (plane < 3 ? 1 : -1) * i * std::numbers::pi / points;
        double radius = i % 2 == 0 ? 1 : 0.3;
        ring.push_back({radius * std::cos(angle), radius * std::sin(angle)});
        double v[3] = {};
        v[plane % 3] = ring.back()[0];
        v[(plane + 1) % 3] = ring.back()[1];
        text += "v " + std::to_string(v[0]) + " " + std::to_string(v[1]) + " " +
                std::to_string(v[2]) + "\n";
        face += " " + std::to_string(i + 1);
      }
      for (std::size_t i = 0; i < ring.size(); ++i) {
        const auto &a = ring[i], &b = ring[(i + 1) % ring.size()];
        area += (a[0] * b[1] - a[1] * b[0]) / 2;
      }
      Mesh mesh;
      ASSERT_TRUE(decode_text_mesh(text + face, untouched(), mesh).ok());
      EXPECT_EQ(mesh.faces.size(), static_cast<std::size_t>(2 * points - 2));
      EXPECT_NEAR(mesh_area(mesh), std::abs(area), 1e-4) << points << " points, plane " << plane;
      EXPECT_EQ(mesh.counts.polygons, 1);
    }
  }
}

TEST(MeshTidy, EachCleaningIsOptionalAndCounted) {
  std::string text =
      "v 0 0 0\nv 1 0 0\nv 0 1 0\nv -0 0 0\nv 9 9 9\nf 1 2 3\nf 4 3 2\nf 1 1 2\nf 1 4 2\n";
  MeshOptions options = untouched();
  Mesh mesh;
  ASSERT_TRUE(decode_text_mesh(text, options, mesh).ok());
  EXPECT_EQ(mesh.vertices.size(), 5U);
  EXPECT_EQ(mesh.faces.size(), 4U);
  options.merge_vertices = true;
  ASSERT_TRUE(decode_text_mesh(text, options, mesh).ok());
  EXPECT_EQ(mesh.counts.merged_vertices, 1);
  options.drop_degenerate_faces = options.drop_duplicate_faces = true;
  ASSERT_TRUE(decode_text_mesh(text, options, mesh).ok());
  EXPECT_EQ(mesh.counts.degenerate_faces, 2);
  EXPECT_EQ(mesh.counts.duplicate_faces, 1);
  EXPECT_EQ(mesh.faces, (std::vector<Face>{{0, 1, 2}}));
  options.drop_unused_vertices = true;
  ASSERT_TRUE(decode_text_mesh(text, options, mesh).ok());
  EXPECT_EQ(mesh.counts.unused_vertices, 1);
  EXPECT_EQ(mesh.counts.file_vertices, 5);
  EXPECT_EQ(mesh.counts.file_faces, 4);
}

TEST(MeshTidy, SnappingMergesWhatFallsIntoOneBin) {
  Mesh mesh = field(20);
  ASSERT_TRUE(tidy_mesh({.bins = 8}, mesh).ok());
  EXPECT_LE(mesh.vertices.size(), 8U * 8U * 8U);
  EXPECT_GT(mesh.counts.merged_vertices, 0);
  for (const auto& vertex : mesh.vertices) {
    for (float c : vertex) EXPECT_EQ(c, undiscretize(discretize(c, 8), 8));
  }
  auto zyx = [](const std::array<float, 3>& a, const std::array<float, 3>& b) {
    return std::array{a[2], a[1], a[0]} < std::array{b[2], b[1], b[0]};
  };
  EXPECT_TRUE(std::is_sorted(mesh.vertices.begin(), mesh.vertices.end(), zyx));
}

TEST(MeshTidy, ScalingSurvivesExtremes) {
  Mesh mesh;
  ASSERT_TRUE(decode_text_mesh("v -3e38 0 0\nv 3e38 0 0\nv 0 1e-30 0\nf 1 2 3\n", {}, mesh).ok());
  EXPECT_EQ(mesh.vertices.front()[0], -1);
  EXPECT_EQ(mesh.vertices.back()[0], 1);
  ASSERT_TRUE(decode_text_mesh("v 1e30 0 0\nv 1e-30 0 0\nv 0 1e-30 0\nf 1 2 3\n", {}, mesh).ok());
}

TEST(MeshWrite, WhatIsWrittenIsReadBackBitForBit) {
  Mesh mesh = field(12), back;
  ASSERT_TRUE(tidy_mesh({}, mesh).ok());
  for (const std::string& file :
       {encode_obj(mesh), encode_ply(mesh), encode_ply(mesh, {.ascii = true})}) {
    ASSERT_TRUE(decode_text_mesh(file, untouched(), back).ok());
    EXPECT_TRUE(back.vertices == mesh.vertices);
    EXPECT_TRUE(back.faces == mesh.faces);
  }
  mesh.faces[0][0] = std::int64_t{1} << 40;
  EXPECT_THROW(encode_ply(mesh), Error);
}

}  // namespace
}  // namespace millrace
