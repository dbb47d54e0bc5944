#include "tests/decoders/image/image_files.h"

#include <millrace/decoders/image/image_write.h>
#include <millrace/decoders/mesh/mesh_picture.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace millrace {
namespace {

Array soup(const std::vector<float>& corners) {
  Array triangles =
      Array::empty(DType::float32, {static_cast<std::int64_t>(corners.size() / 9), 3, 3});
  std::ranges::copy(corners, triangles.as<float>().begin());
  return triangles;
}

std::int64_t pixels_other_than(const Array& picture, std::uint8_t value) {
  std::int64_t count = 0;
  for (std::uint8_t byte : picture.as<const std::uint8_t>()) count += byte != value ? 1 : 0;
  return count;
}

// Every pixel's ray is met with every triangle, in double and without our projection.
TEST(MeshPicture, ShowsWhatARayMeetsFirst) {
  TemporaryFolder folder;
  std::mt19937 random(3);
  std::uniform_real_distribution<float> place(-1, 1);
  std::vector<float> corners(9 * 12);
  for (float& x : corners) x = place(random);
  const Array picture =
      draw_triangles(soup(corners), {.side = 96, .supersample = 1, .edges = false});
  write_bytes(folder / "corners", std::as_bytes(std::span(corners)));
  write_bytes(folder / "picture", pixels_of(picture));
  const std::string wrong = run_python(R"(
import sys, numpy as np
root = sys.argv[1]
t = np.fromfile(root + '/corners', np.float32).reshape(-1, 3, 3).astype(float)
seen = np.fromfile(root + '/picture', np.uint8).reshape(96, 96, 3)
a, b = np.radians(35), np.radians(25)
around = np.array([[np.cos(a), 0, np.sin(a)], [0, 1, 0], [-np.sin(a), 0, np.cos(a)]])
tilt = np.array([[1, 0, 0], [0, np.cos(b), -np.sin(b)], [0, np.sin(b), np.cos(b)]])
view = tilt @ around
eye = view.T @ [0, 0, 1]  # towards the eye, in the world
n = np.cross(t[:, 1] - t[:, 0], t[:, 2] - t[:, 0])
n /= np.linalg.norm(n, axis=1, keepdims=True)
n *= np.sign(n @ eye)[:, None]
light = 0.5 + 0.5 * (n @ (view.T @ [0.25, 0.60, 0.76]))
wrong = 0
for y in range(96):
    for x in range(96):
        origin = view.T @ [(x + 0.5 - 48) / 48 / 0.94 * 1.5, (48 - y - 0.5) / 48 / 0.94 * 1.5, 0]
        best, value = -1e9, np.array([255.0] * 3)
        for k in range(len(t)):
            m = np.stack([t[k, 1] - t[k, 0], t[k, 2] - t[k, 0], -eye], 1)
            u, v, far = np.linalg.solve(m, origin - t[k, 0])
            if u >= 0 and v >= 0 and u + v <= 1 and far > best:
                best, value = far, light[k] * np.array([150, 190, 235.0])
        wrong += np.abs(seen[y, x] - value).max() > 1.5
print(wrong)
)",
                                       folder.path().string());
  EXPECT_LT(std::stoi(wrong), 96 * 96 / 100) << "of " << 96 * 96 << " pixels";
  EXPECT_GT(pixels_other_than(picture, 255), 96 * 96 / 4);
}

TEST(MeshPicture, LeavesOutPaddingAndWhatIsNotFinite) {
  const std::vector<float> vertices = {-1, 0, 0, 1, 0, 0, 0, 1, 0, std::nanf(""), 0, 0};
  const MeshPictureOptions options{.side = 48};
  const Array one = draw_mesh(vertices, std::vector<std::int64_t>{0, 1, 2}, options);
  const Array padded = draw_mesh(
      vertices, std::vector<std::int64_t>{0, 1, 2, -1, -1, -1, 0, 1, 3, 0, 1, 99}, options);
  EXPECT_EQ(pixels_of(one), pixels_of(padded));
  EXPECT_GT(pixels_other_than(one, 255), 48);
  EXPECT_EQ(pixels_other_than(draw_mesh(vertices, {}, options), 255), 0);
}

// Coordinates beyond all bounds must neither crash nor take long, fitted or not.
TEST(MeshPicture, BearsAnyFiniteCoordinate) {
  const float far = std::numeric_limits<float>::max();
  for (bool fit : {false, true}) {
    const MeshPictureOptions options{.side = 32, .fit = fit};
    draw_triangles(soup({far, -far, far, -far, far, 0, far, far, -far}), options);
    draw_triangles(soup({0, 0, 0, 0, 0, 0, 0, 0, 0}), options);
    draw_triangles(soup({1e20F, 0, 0, 1e-20F, 0, 0, 0, 1, 0}), options);
  }
  EXPECT_THROW(draw_triangles(soup({}), {.side = 0}), Error);
}

TEST(MeshPicture, FillsThePictureWithASmallMeshIfAsked) {
  const Array small = soup({0, 0, 0, 0.01F, 0, 0, 0, 0.01F, 0});
  EXPECT_LT(pixels_other_than(draw_triangles(small, {.side = 64}), 255), 30);
  EXPECT_GT(pixels_other_than(draw_triangles(small, {.side = 64, .fit = true}), 255), 3000);
}

TEST(MeshPicture, MakesAMeshOfTrianglesAndTrianglesOfAMesh) {
  const Array two = soup({0, 0, 0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 1, 1, 0, 0, 1, 0});
  const Mesh mesh = mesh_of_triangles(two);
  EXPECT_EQ(mesh.vertices.size(), 4U);
  ASSERT_EQ(mesh.faces.size(), 2U);
  const Array back = triangles_of({mesh.vertices[0].data(), 12}, {mesh.faces[0].data(), 6});
  EXPECT_EQ(pixels_of(back), pixels_of(two));
  EXPECT_TRUE(mesh_of_triangles(soup({})).faces.empty());
  EXPECT_TRUE(mesh_of_triangles(soup({0, 0, 0, 0, 0, 0, 1, 1, 1})).faces.empty());
  const float nan = std::nanf("");
  EXPECT_TRUE(mesh_of_triangles(soup({0, 0, 0, nan, 0, 0, 1, 1, 1})).faces.empty());
}

TEST(MeshSheet, HasARowForEachRowAndLeavesPlacesEmpty) {
  const Array triangle = soup({-1, -1, 0, 1, -1, 0, 0, 1, 0});
  const Array sheet = mesh_sheet({{triangle, triangle, Array()}, {soup({})}}, {.side = 40});
  ASSERT_EQ(sheet.shape(), (Shape{2 * 44 + 4, 3 * 44 + 4, 3}));
  auto at = [&](std::int64_t y, std::int64_t x) {
    return std::to_integer<int>(sheet.data()[(y * sheet.shape()[1] + x) * 3]);
  };
  EXPECT_EQ(at(0, 0), 220);
  EXPECT_EQ(at(4 + 20, 4 + 20), at(4 + 20, 48 + 20));
  EXPECT_LT(at(4 + 20, 4 + 20), 200);
  EXPECT_EQ(at(4 + 20, 92 + 20), 220);  // no picture there
  EXPECT_EQ(at(48 + 20, 4 + 20), 255);  // a picture of nothing
  EXPECT_THROW(make_sheet(std::vector<Array>{Array::empty(DType::uint8, {3, 3, 3})}), Error);
}

}  // namespace
}  // namespace millrace
