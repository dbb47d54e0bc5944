// A mesh as people expect to see one: turned a little, seen from above, lit from the eye. Plain
// triangles with a depth for each pixel; a tile is small, and nothing more is needed.
#include "tools/inspect/tiles.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace millrace {

namespace {

using Point = std::array<float, 3>;

Point operator-(const Point& a, const Point& b) {
  return {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
}
Point cross(const Point& a, const Point& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}

// Around the upright axis (y) by 35 degrees, then towards the eye by 25.
Point turned(const Point& p) {
  constexpr float ca = 0.819F, sa = 0.574F, cb = 0.906F, sb = 0.423F;
  Point q{ca * p[0] + sa * p[2], p[1], -sa * p[0] + ca * p[2]};
  return {q[0], cb * q[1] - sb * q[2], sb * q[1] + cb * q[2]};
}

class Canvas {
 public:
  Canvas() : tile_(Array::empty(DType::uint8, {tile_side, tile_side, 3})) {
    std::ranges::fill(tile_.as<std::uint8_t>(), std::uint8_t{24});
    depth_.fill(-std::numeric_limits<float>::infinity());
  }

  void triangle(const Point& a, const Point& b, const Point& c) {
    Point normal = cross(b - a, c - a);
    float length = std::hypot(normal[0], normal[1], normal[2]);
    if (!(length > 0)) return;
    float light = std::abs(0.3F * normal[0] - 0.5F * normal[1] + 0.81F * normal[2]) / length;
    auto shade = static_cast<std::uint8_t>(50 + 190 * std::min(light, 1.0F));
    auto low = [](float x) { return std::max(0, static_cast<int>(std::floor(x))); };
    auto high = [](float x) {
      return std::min(static_cast<int>(tile_side) - 1, static_cast<int>(std::ceil(x)));
    };
    float area = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);
    if (std::abs(area) < 1e-6F) return;
    for (int y = low(std::min({a[1], b[1], c[1]})); y <= high(std::max({a[1], b[1], c[1]})); ++y) {
      for (int x = low(std::min({a[0], b[0], c[0]})); x <= high(std::max({a[0], b[0], c[0]}));
           ++x) {
        auto px = static_cast<float>(x), py = static_cast<float>(y);
        float v = ((px - a[0]) * (c[1] - a[1]) - (py - a[1]) * (c[0] - a[0])) / area;
        float w = ((b[0] - a[0]) * (py - a[1]) - (b[1] - a[1]) * (px - a[0])) / area;
        if (v < 0 || w < 0 || v + w > 1) continue;
        set(x, y, a[2] + v * (b[2] - a[2]) + w * (c[2] - a[2]), shade);
      }
    }
  }
  const Array& tile() const { return tile_; }

 private:
  void set(int x, int y, float depth, std::uint8_t shade) {
    auto at = static_cast<std::size_t>(y * tile_side + x);
    if (depth <= depth_[at]) return;
    depth_[at] = depth;
    auto pixels = tile_.as<std::uint8_t>();
    pixels[at * 3] = static_cast<std::uint8_t>(shade * 9 / 10);
    pixels[at * 3 + 1] = shade;
    pixels[at * 3 + 2] = static_cast<std::uint8_t>(std::min(255, shade * 11 / 10));
  }

  Array tile_;
  std::array<float, static_cast<std::size_t>(tile_side* tile_side)> depth_;
};

}  // namespace

Array mesh_tile(std::span<const float> vertices, std::span<const std::int64_t> faces) {
  std::vector<Point> points(vertices.size() / 3);
  Point low{1e30F, 1e30F, 1e30F}, high{-1e30F, -1e30F, -1e30F};
  for (std::size_t i = 0; i < points.size(); ++i) {
    points[i] = turned({vertices[3 * i], vertices[3 * i + 1], vertices[3 * i + 2]});
    for (std::size_t axis = 0; axis < 3; ++axis) {
      low[axis] = std::min(low[axis], points[i][axis]);
      high[axis] = std::max(high[axis], points[i][axis]);
    }
  }
  float side = std::max({high[0] - low[0], high[1] - low[1], 1e-6F});
  float scale = static_cast<float>(tile_side - 12) / side;
  for (Point& p : points) {
    p = {tile_side / 2.0F + (p[0] - (low[0] + high[0]) / 2) * scale,
         tile_side / 2.0F - (p[1] - (low[1] + high[1]) / 2) * scale, p[2] * scale};
  }
  Canvas canvas;
  auto inside = [&](std::int64_t i) {
    return i >= 0 && i < static_cast<std::int64_t>(points.size());
  };
  for (std::size_t f = 0; f + 2 < faces.size(); f += 3) {
    if (!inside(faces[f]) || !inside(faces[f + 1]) || !inside(faces[f + 2])) continue;  // padding
    canvas.triangle(points[static_cast<std::size_t>(faces[f])],
                    points[static_cast<std::size_t>(faces[f + 1])],
                    points[static_cast<std::size_t>(faces[f + 2])]);
  }
  return canvas.tile();
}

}  // namespace millrace
