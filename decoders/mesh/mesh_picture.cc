#include <millrace/decoders/image/image_write.h>
#include <millrace/decoders/mesh/mesh_picture.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace millrace {

namespace {

using Point = std::array<float, 3>;
using Triangle = std::array<Point, 3>;

Point operator-(const Point& a, const Point& b) {
  return {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
}
Point cross(const Point& a, const Point& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}

// Rotates by 35 degrees about the vertical axis (y), then by 25 towards the camera; z points to it.
Point turned(const Point& p) {
  constexpr float ca = 0.819F, sa = 0.574F, cb = 0.906F, sb = 0.423F;
  const Point q{ca * p[0] + sa * p[2], p[1], -sa * p[0] + ca * p[2]};
  return {q[0], cb * q[1] - sb * q[2], sb * q[1] + cb * q[2]};
}

// The light is behind the camera, to its right and above. A face that is turned away is as bright
// as one that is turned to the light, since the outside of a triangle is not known.
float brightness(const Triangle& t) {
  constexpr Point light{0.25F, 0.60F, 0.76F};
  const Point n = cross(t[1] - t[0], t[2] - t[0]);
  const float length = std::hypot(n[0], n[1], n[2]);
  if (!(length > 0)) return 0;
  const float facing = (n[0] * light[0] + n[1] * light[1] + n[2] * light[2]) / length;
  return 0.5F + 0.5F * (n[2] < 0 ? -facing : facing);
}

bool is_finite(const Triangle& t) {
  return std::ranges::all_of(t, [](const Point& p) {
    return std::ranges::all_of(p, [](float x) { return std::isfinite(x); });
  });
}

class Canvas {
 public:
  explicit Canvas(const MeshPictureOptions& options)
      : options_(options),
        fine_(options.side * options.supersample),
        depth_(static_cast<std::size_t>(fine_ * fine_), -std::numeric_limits<float>::infinity()),
        shade_(depth_.size(), -1) {}

  // Rotated coordinates to pixels; `middle` is mapped to the middle of the picture.
  void frame(const Point& middle, float half_extent) {
    middle_ = middle;
    scale_ = static_cast<float>(fine_) * 0.47F / std::max(half_extent, 1e-6F);
  }

  void draw(const Triangle& turned_triangle, bool edges) {
    const float light = brightness(turned_triangle);
    Triangle t;
    for (std::size_t i = 0; i < 3; ++i) t[i] = to_pixels(turned_triangle[i]);
    const auto& [a, b, c] = t;
    const float area = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);
    if (!(std::abs(area) > 1e-6F) || !std::isfinite(area)) return;
    // Distance of a point from an edge, in pixels per unit of the opposite corner's weight.
    const auto height = [&](const Point& p, const Point& q) {
      return std::abs(area) / std::max(std::hypot(p[0] - q[0], p[1] - q[1]), 1e-6F);
    };
    const Point heights{height(b, c), height(a, c), height(a, b)};
    const float border = 0.35F * static_cast<float>(options_.supersample);
    const std::int64_t bottom = last(std::max({a[1], b[1], c[1]}));
    const std::int64_t right = last(std::max({a[0], b[0], c[0]}));
    for (std::int64_t y = first(std::min({a[1], b[1], c[1]})); y <= bottom; ++y) {
      for (std::int64_t x = first(std::min({a[0], b[0], c[0]})); x <= right; ++x) {
        const float px = static_cast<float>(x) + 0.5F, py = static_cast<float>(y) + 0.5F;
        const float v = ((px - a[0]) * (c[1] - a[1]) - (py - a[1]) * (c[0] - a[0])) / area;
        const float w = ((b[0] - a[0]) * (py - a[1]) - (b[1] - a[1]) * (px - a[0])) / area;
        const float u = 1 - v - w;
        if (u < 0 || v < 0 || w < 0) continue;
        const bool on_edge =
            edges && std::min({u * heights[0], v * heights[1], w * heights[2]}) < border;
        put(x, y, u * a[2] + v * b[2] + w * c[2], on_edge ? 0.55F * light : light);
      }
    }
  }

  // Each pixel is the mean of its samples.
  Array picture() const {
    Array picture = Array::empty(DType::uint8, {options_.side, options_.side, 3});
    std::uint8_t* to = picture.as<std::uint8_t>().data();
    const std::int64_t n = options_.supersample;
    for (std::int64_t y = 0; y < options_.side; ++y) {
      for (std::int64_t x = 0; x < options_.side; ++x) {
        Point sum{};
        for (std::int64_t i = 0; i < n * n; ++i) {
          const float shade =
              shade_[static_cast<std::size_t>((y * n + i / n) * fine_ + x * n + i % n)];
          for (std::size_t k = 0; k < 3; ++k) {
            sum[k] += shade < 0 ? static_cast<float>(options_.background[k])
                                : shade * static_cast<float>(options_.colour[k]);
          }
        }
        for (float value : sum) {
          *to++ = static_cast<std::uint8_t>(std::lround(value / static_cast<float>(n * n)));
        }
      }
    }
    return picture;
  }

 private:
  Point to_pixels(const Point& p) const {
    const float half = static_cast<float>(fine_) / 2;
    return {half + (p[0] - middle_[0]) * scale_, half - (p[1] - middle_[1]) * scale_,
            p[2] * scale_};
  }
  // Clamped before the conversion: a coordinate may have any finite value.
  std::int64_t first(float x) const {
    return static_cast<std::int64_t>(std::clamp(std::floor(x), 0.0F, static_cast<float>(fine_)));
  }
  std::int64_t last(float x) const {
    return static_cast<std::int64_t>(
        std::clamp(std::ceil(x), -1.0F, static_cast<float>(fine_ - 1)));
  }
  void put(std::int64_t x, std::int64_t y, float depth, float shade) {
    const auto at = static_cast<std::size_t>(y * fine_ + x);
    if (depth <= depth_[at]) return;
    depth_[at] = depth;
    shade_[at] = shade;
  }

  MeshPictureOptions options_;
  std::int64_t fine_;
  Point middle_{};
  float scale_ = 1;
  std::vector<float> depth_, shade_;  // shade < 0: background
};

struct Box {
  Point low, high;
};

Box box_of(const std::vector<Triangle>& triangles) {
  constexpr float far = std::numeric_limits<float>::max();
  Box box{{far, far, far}, {-far, -far, -far}};
  for (const Triangle& t : triangles) {
    for (const Point& p : t) {
      for (std::size_t k = 0; k < 3; ++k) {
        box.low[k] = std::min(box.low[k], p[k]);
        box.high[k] = std::max(box.high[k], p[k]);
      }
    }
  }
  return box;
}

std::vector<Triangle> finite_triangles(const Array& corners) {
  const auto values = corners.as<const float>();
  if (values.size() % 9 != 0) {
    throw Error("triangles are float32 [m, 3, 3], not " + to_string(corners))
        .kind(ErrorKind::usage);
  }
  std::vector<Triangle> triangles;
  for (std::size_t i = 0; i < values.size(); i += 9) {
    Triangle t;
    for (std::size_t k = 0; k < 9; ++k) t[k / 3][k % 3] = values[i + k];
    if (is_finite(t)) triangles.push_back(t);
  }
  return triangles;
}

void check(const MeshPictureOptions& options) {
  if (options.side >= 1 && options.side <= 8192 && options.supersample >= 1 &&
      options.supersample <= 8) {
    return;
  }
  throw Error("a mesh's picture has 1 to 8192 pixels a side and 1 to 8 samples, not " +
              std::to_string(options.side) + " and " + std::to_string(options.supersample))
      .kind(ErrorKind::usage);
}

}  // namespace

Array triangles_of(std::span<const float> vertices, std::span<const std::int64_t> faces) {
  const auto count = static_cast<std::int64_t>(vertices.size() / 3);
  const auto inside = [&](std::int64_t i) { return i >= 0 && i < count; };
  std::vector<float> corners;
  for (std::size_t f = 0; f + 2 < faces.size(); f += 3) {
    if (!inside(faces[f]) || !inside(faces[f + 1]) || !inside(faces[f + 2])) continue;
    for (std::size_t i = 0; i < 3; ++i) {
      const auto from = vertices.begin() + 3 * faces[f + i];
      corners.insert(corners.end(), from, from + 3);
    }
  }
  Array triangles =
      Array::empty(DType::float32, {static_cast<std::int64_t>(corners.size() / 9), 3, 3});
  std::ranges::copy(corners, triangles.as<float>().begin());
  return triangles;
}

Mesh mesh_of_triangles(const Array& corners) {
  Mesh mesh;
  for (const Triangle& t : finite_triangles(corners)) {
    const auto first = static_cast<std::int64_t>(mesh.vertices.size());
    mesh.vertices.insert(mesh.vertices.end(), t.begin(), t.end());
    mesh.faces.push_back({first, first + 1, first + 2});
  }
  if (mesh.faces.empty()) return mesh;
  // If no triangle is left, the mesh is empty.
  const Status status =
      tidy_mesh({.drop_duplicate_faces = false, .normalize = false, .sort = false}, mesh);
  return status.ok() ? mesh : Mesh{};
}

Array draw_triangles(const Array& corners, const MeshPictureOptions& options) {
  check(options);
  std::vector<Triangle> triangles = finite_triangles(corners);
  for (Triangle& t : triangles) {
    for (Point& p : t) p = turned(p);
  }
  std::erase_if(triangles, [](const Triangle& t) { return !is_finite(t); });
  Canvas canvas(options);
  float half_extent = 1.5F;  // of the rotated cube
  Point middle{};
  if (options.fit && !triangles.empty()) {
    const Box box = box_of(triangles);
    for (std::size_t k = 0; k < 3; ++k) middle[k] = box.low[k] / 2 + box.high[k] / 2;
    half_extent = std::max(box.high[0] / 2 - box.low[0] / 2, box.high[1] / 2 - box.low[1] / 2);
  }
  canvas.frame(middle, half_extent);
  // Borders cover at most a fifth of the picture, or fine meshes would be black.
  const auto pixels = static_cast<std::size_t>(options.side * options.side);
  const bool edges = options.edges && triangles.size() * 60 < pixels;
  for (const Triangle& t : triangles) canvas.draw(t, edges);
  return canvas.picture();
}

Array draw_mesh(std::span<const float> vertices, std::span<const std::int64_t> faces,
                const MeshPictureOptions& options) {
  return draw_triangles(triangles_of(vertices, faces), options);
}

Array mesh_sheet(const std::vector<std::vector<Array>>& rows, const MeshPictureOptions& options) {
  check(options);
  std::size_t columns = 1;
  for (const auto& row : rows) columns = std::max(columns, row.size());
  std::vector<Array> tiles;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < columns; ++i) {
      const bool there = i < row.size() && row[i].buffer().data() != nullptr;
      tiles.push_back(there ? draw_triangles(row[i], options) : Array());
    }
  }
  return make_sheet(tiles, {.columns = static_cast<std::int64_t>(columns),
                            .height = options.side,
                            .width = options.side,
                            .background = 220});
}

}  // namespace millrace
