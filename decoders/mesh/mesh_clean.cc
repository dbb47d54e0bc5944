// Cleaning, scaling, rounding and sorting of a mesh. Everything but sorting takes linear time.
#include <millrace/decoders/mesh/mesh.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

namespace millrace {

namespace {

using Vertex = std::array<float, 3>;
using Face = std::array<std::int64_t, 3>;

std::size_t at(std::int64_t index) {
  return static_cast<std::size_t>(index);
}

std::uint64_t mix(std::uint64_t x) {
  x ^= x >> 32;
  x *= 0xD6E8FEB86659FD93U;
  x ^= x >> 32;
  x *= 0xD6E8FEB86659FD93U;
  return x ^ (x >> 32);
}

// Finds equal items: an open-addressing hash table of indices into the caller's array.
class EqualFinder {
 public:
  explicit EqualFinder(std::size_t items)
      : slots_(std::bit_ceil(items * 2 + 1), -1), mask_(slots_.size() - 1) {}

  // Returns the index of an earlier equal item; if there is none, inserts `place` and returns it.
  template <typename Equal>
  std::int64_t find_or_keep(std::uint64_t hash, std::int64_t place, const Equal& equal) {
    for (std::size_t slot = hash & mask_;; slot = (slot + 1) & mask_) {
      if (slots_[slot] < 0) return slots_[slot] = static_cast<std::int32_t>(place);
      if (equal(slots_[slot])) return slots_[slot];
    }
  }

 private:
  std::vector<std::int32_t> slots_;
  std::size_t mask_;
};

std::uint64_t hash_of(const Vertex& v) {
  auto bits = [&](std::size_t k) { return std::uint64_t{std::bit_cast<std::uint32_t>(v[k])}; };
  return mix(mix(bits(0) | bits(1) << 32) + bits(2));
}

std::uint64_t hash_of(const Face& f) {
  auto bits = [&](std::size_t k) { return static_cast<std::uint64_t>(f[k]); };
  return mix(mix(mix(bits(0)) + bits(1)) + bits(2));
}

void merge_vertices(Mesh& mesh) {
  EqualFinder finder(mesh.vertices.size());
  std::vector<std::int32_t> moved(mesh.vertices.size());
  std::size_t kept = 0;
  for (std::size_t i = 0; i < mesh.vertices.size(); ++i) {
    Vertex v = mesh.vertices[i];
    for (float& coordinate : v) coordinate += 0.0F;  // -0 becomes 0: equal values have equal bits
    auto next = static_cast<std::int64_t>(kept);
    std::int64_t place = finder.find_or_keep(
        hash_of(v), next, [&](std::int32_t other) { return mesh.vertices[at(other)] == v; });
    if (place == next) mesh.vertices[kept++] = v;
    moved[i] = static_cast<std::int32_t>(place);
  }
  mesh.counts.merged_vertices += static_cast<std::int64_t>(mesh.vertices.size() - kept);
  mesh.vertices.resize(kept);
  for (Face& face : mesh.faces) {
    for (std::int64_t& corner : face) corner = moved[at(corner)];
  }
}

void drop_degenerate_faces(Mesh& mesh) {
  auto dropped = std::erase_if(mesh.faces, [&](const Face& face) {
    const Vertex& a = mesh.vertices[at(face[0])];
    const Vertex& b = mesh.vertices[at(face[1])];
    const Vertex& c = mesh.vertices[at(face[2])];
    return a == b || b == c || a == c;
  });
  mesh.counts.degenerate_faces += static_cast<std::int64_t>(dropped);
}

Face sorted(Face face) {
  if (face[0] > face[1]) std::swap(face[0], face[1]);
  if (face[1] > face[2]) std::swap(face[1], face[2]);
  if (face[0] > face[1]) std::swap(face[0], face[1]);
  return face;
}

void drop_duplicate_faces(Mesh& mesh) {
  EqualFinder finder(mesh.faces.size());
  std::size_t kept = 0;
  for (const Face& face : mesh.faces) {
    Face key = sorted(face);
    auto next = static_cast<std::int64_t>(kept);
    std::int64_t place = finder.find_or_keep(hash_of(key), next, [&](std::int32_t other) {
      return sorted(mesh.faces[at(other)]) == key;
    });
    if (place == next) mesh.faces[kept++] = face;
  }
  mesh.counts.duplicate_faces += static_cast<std::int64_t>(mesh.faces.size() - kept);
  mesh.faces.resize(kept);
}

void drop_unused_vertices(Mesh& mesh) {
  std::vector<std::int32_t> moved(mesh.vertices.size(), -1);
  for (const Face& face : mesh.faces) {
    for (std::int64_t corner : face) moved[at(corner)] = 0;
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < moved.size(); ++i) {
    if (moved[i] < 0) continue;
    mesh.vertices[kept] = mesh.vertices[i];
    moved[i] = static_cast<std::int32_t>(kept++);
  }
  if (kept == mesh.vertices.size()) return;
  mesh.counts.unused_vertices += static_cast<std::int64_t>(mesh.vertices.size() - kept);
  mesh.vertices.resize(kept);
  for (Face& face : mesh.faces) {
    for (std::int64_t& corner : face) corner = moved[at(corner)];
  }
}

void clean(const MeshOptions& options, Mesh& mesh) {
  if (options.merge_vertices) merge_vertices(mesh);
  if (options.drop_degenerate_faces) drop_degenerate_faces(mesh);
  if (options.drop_duplicate_faces) drop_duplicate_faces(mesh);
  if (options.drop_unused_vertices) drop_unused_vertices(mesh);
}

// In double, so that extreme float32 values neither overflow nor lose precision.
void normalize(Mesh& mesh) {
  std::array<double, 3> low, high;
  low.fill(std::numeric_limits<double>::infinity());
  high.fill(-std::numeric_limits<double>::infinity());
  for (const Vertex& v : mesh.vertices) {
    for (std::size_t k = 0; k < 3; ++k) {
      low[k] = std::min(low[k], static_cast<double>(v[k]));
      high[k] = std::max(high[k], static_cast<double>(v[k]));
    }
  }
  double longest = 0;
  for (std::size_t k = 0; k < 3; ++k) longest = std::max(longest, high[k] - low[k]);
  double scale = longest > 0 ? 2 / longest : 1;
  for (Vertex& v : mesh.vertices) {
    for (std::size_t k = 0; k < 3; ++k) {
      double moved = (static_cast<double>(v[k]) - (low[k] + high[k]) / 2) * scale;
      v[k] = static_cast<float>(std::clamp(moved, -1.0, 1.0));
    }
  }
}

void snap(int bins, Mesh& mesh) {
  for (Vertex& v : mesh.vertices) {
    for (float& coordinate : v) coordinate = undiscretize(discretize(coordinate, bins), bins);
  }
}

// Integers that sort in the same order as the floats.
std::uint32_t ordered_bits(float value) {
  auto bits = std::bit_cast<std::uint32_t>(value + 0.0F);
  return (bits >> 31) != 0 ? ~bits : bits | 0x80000000U;
}

void sort_vertices(Mesh& mesh) {
  struct Key {
    std::uint64_t zy;
    std::uint32_t x, place;
  };
  std::vector<Key> keys(mesh.vertices.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const Vertex& v = mesh.vertices[i];
    keys[i] = {std::uint64_t{ordered_bits(v[2])} << 32 | ordered_bits(v[1]), ordered_bits(v[0]),
               static_cast<std::uint32_t>(i)};
  }
  std::sort(keys.begin(), keys.end(), [](const Key& a, const Key& b) {
    if (a.zy != b.zy) return a.zy < b.zy;
    return a.x != b.x ? a.x < b.x : a.place < b.place;
  });
  std::vector<Vertex> before(mesh.vertices);
  std::vector<std::uint32_t> moved(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    mesh.vertices[i] = before[keys[i].place];
    moved[keys[i].place] = static_cast<std::uint32_t>(i);
  }
  for (Face& face : mesh.faces) {
    for (std::int64_t& corner : face) corner = moved[at(corner)];
  }
}

void sort_faces(Mesh& mesh) {
  for (Face& face : mesh.faces) {
    auto lowest = std::min_element(face.begin(), face.end());
    std::rotate(face.begin(), lowest, face.end());
  }
  std::sort(mesh.faces.begin(), mesh.faces.end());
}

Status check(const MeshOptions& options, const Mesh& mesh) {
  auto error = [&](std::string reason) {
    return Error(std::move(reason)).stage(std::string(to_string(mesh.format)));
  };
  // Indices are 32-bit here.
  constexpr std::size_t most = std::numeric_limits<std::int32_t>::max();
  if (mesh.vertices.size() > most || mesh.faces.size() > most) {
    return error("more than 2^31 vertices or faces");
  }
  for (const Face& face : mesh.faces) {
    for (std::int64_t corner : face) {
      if (static_cast<std::uint64_t>(corner) >= mesh.vertices.size()) {
        return error("a face has vertex " + std::to_string(corner) + ", but there are " +
                     std::to_string(mesh.vertices.size()) + " vertices");
      }
    }
  }
  if (options.bins < 0 || options.bins > 65536) {
    return error("bins must be 0 to 65536, but is " + std::to_string(options.bins))
        .kind(ErrorKind::usage);
  }
  return {};
}

}  // namespace

Status tidy_mesh(const MeshOptions& options, Mesh& mesh) {
  if (Status status = check(options, mesh); !status.ok()) return status;
  clean(options, mesh);
  if (options.normalize) normalize(mesh);
  if (options.bins > 0) {
    snap(options.bins, mesh);
    clean(options, mesh);
  }
  if (mesh.faces.empty()) {
    return Error("no face is left: all " + std::to_string(mesh.counts.degenerate_faces) +
                 " are degenerate")
        .stage(std::string(to_string(mesh.format)));
  }
  if (options.sort) {
    sort_vertices(mesh);
    sort_faces(mesh);
  }
  return {};
}

}  // namespace millrace
