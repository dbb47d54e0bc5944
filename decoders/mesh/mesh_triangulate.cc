// Triangulates polygons. Most polygons in files are convex quads, for which a fan is right; the
// test for that is cheap, and only concave polygons need ear clipping.
#include <millrace/decoders/mesh/mesh_builder.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

namespace millrace::detail {

namespace {

using Vec3 = std::array<double, 3>;
using Vec2 = std::array<double, 2>;
using Triangle = std::array<std::int64_t, 3>;

constexpr std::size_t most_corners = 512;

// Newell's normal: its length is twice the area, and collinear corners do not disturb it.
Vec3 newell_normal(std::span<const Vec3> corners) {
  Vec3 normal{};
  for (std::size_t i = 0; i < corners.size(); ++i) {
    const Vec3 &a = corners[i], &b = corners[(i + 1) % corners.size()];
    normal[0] += (a[1] - b[1]) * (a[2] + b[2]);
    normal[1] += (a[2] - b[2]) * (a[0] + b[0]);
    normal[2] += (a[0] - b[0]) * (a[1] + b[1]);
  }
  return normal;
}

// The polygon projected along the largest axis of its normal, counter-clockwise.
std::vector<Vec2> flatten(std::span<const Vec3> corners) {
  Vec3 normal = newell_normal(corners);
  std::size_t axis = 0;
  for (std::size_t i = 1; i < 3; ++i) {
    if (std::abs(normal[i]) > std::abs(normal[axis])) axis = i;
  }
  std::size_t u = (axis + 1) % 3, v = (axis + 2) % 3;
  if (normal[axis] < 0) std::swap(u, v);
  std::vector<Vec2> flat(corners.size());
  std::transform(corners.begin(), corners.end(), flat.begin(), [u, v](const Vec3& corner) {
    return Vec2{corner[u], corner[v]};
  });
  return flat;
}

double turn(const Vec2& a, const Vec2& b, const Vec2& c) {
  return (b[0] - a[0]) * (c[1] - b[1]) - (b[1] - a[1]) * (c[0] - b[0]);
}

bool is_convex(const std::vector<Vec2>& flat) {
  std::size_t n = flat.size();
  for (std::size_t i = 0; i < n; ++i) {
    if (turn(flat[i], flat[(i + 1) % n], flat[(i + 2) % n]) < 0) return false;
  }
  // A pentagram turns left at each corner too; but any triangulation of it overlaps itself.
  return true;
}

bool inside(const Vec2& p, const Vec2& a, const Vec2& b, const Vec2& c) {
  return turn(a, b, p) >= 0 && turn(b, c, p) >= 0 && turn(c, a, p) >= 0;
}

class EarClipper {
 public:
  EarClipper(const std::vector<Vec2>& flat, std::int64_t& work) : flat_(flat), work_(work) {
    for (std::size_t i = 0; i < flat.size(); ++i) left_.push_back(i);
  }

  // The triangles as indices into the polygon; empty if the budget is used up.
  std::vector<std::array<std::size_t, 3>> clip() {
    std::vector<std::array<std::size_t, 3>> triangles;
    std::size_t at = 0, refused = 0;
    while (left_.size() > 3) {
      if (work_ <= 0) return {};
      std::size_t n = left_.size();
      std::size_t previous = (at + n - 1) % n, next = (at + 1) % n;
      // If no corner is an ear, the polygon crosses itself; then any cut will do.
      if (refused < n && !is_ear(left_[previous], left_[at], left_[next])) {
        at = next;
        ++refused;
        continue;
      }
      triangles.push_back({left_[previous], left_[at], left_[next]});
      left_.erase(left_.begin() + static_cast<std::ptrdiff_t>(at));
      if (at == left_.size()) at = 0;
      refused = 0;
    }
    triangles.push_back({left_[0], left_[1], left_[2]});
    return triangles;
  }

 private:
  bool is_ear(std::size_t a, std::size_t b, std::size_t c) {
    if (turn(flat_[a], flat_[b], flat_[c]) <= 0) return false;
    work_ -= static_cast<std::int64_t>(left_.size());
    return std::none_of(left_.begin(), left_.end(), [&](std::size_t p) {
      // A corner at the same position as one of the ear's corners (a slit) does not block the ear.
      if (flat_[p] == flat_[a] || flat_[p] == flat_[b] || flat_[p] == flat_[c]) return false;
      return inside(flat_[p], flat_[a], flat_[b], flat_[c]);
    });
  }

  const std::vector<Vec2>& flat_;
  std::int64_t& work_;
  std::vector<std::size_t> left_;
};

}  // namespace

void cut_polygon(std::span<const std::array<float, 3>> vertices, std::span<Triangle> fan,
                 std::int64_t& work) {
  if (fan.size() + 2 > most_corners || work <= 0) return;
  std::vector<std::int64_t> indices{fan[0][0]};
  for (const Triangle& triangle : fan) indices.push_back(triangle[1]);
  indices.push_back(fan.back()[2]);
  std::vector<Vec3> corners;
  for (std::int64_t index : indices) {
    const auto& v = vertices[static_cast<std::size_t>(index)];
    corners.push_back({v[0], v[1], v[2]});
  }
  std::vector<Vec2> flat = flatten(corners);
  if (is_convex(flat)) return;
  auto triangles = EarClipper(flat, work).clip();
  for (std::size_t i = 0; i < triangles.size(); ++i) {
    for (std::size_t k = 0; k < 3; ++k) fan[i][k] = indices[triangles[i][k]];
  }
}

}  // namespace millrace::detail
