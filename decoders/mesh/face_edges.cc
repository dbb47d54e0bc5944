// Two triangles share two vertices if and only if they share an edge. The edges are put into bins
// by their lower vertex (a counting sort) and each bin is sorted by the upper vertex, so that the
// faces of an edge are adjacent. There is no hashing, so no input makes it slow.
#include <millrace/decoders/mesh/face_edges.h>

#include <algorithm>
#include <string>

namespace millrace {

namespace {

struct HalfEdge {
  std::uint32_t upper = 0;
  std::uint32_t face = 0;
};

using Face = std::array<std::int64_t, 3>;

class EdgeIndex {
 public:
  explicit EdgeIndex(std::span<const Face> faces, std::size_t vertices) : bins_(vertices + 1) {
    for_each_edge(faces, [&](std::size_t lower, std::size_t, std::size_t) { ++bins_[lower + 1]; });
    for (std::size_t i = 1; i < bins_.size(); ++i) bins_[i] += bins_[i - 1];
    edges_.resize(bins_.back());
    // bins_[v] moves to the end of its bin while the bin is filled; the shift below moves it back.
    for_each_edge(faces, [&](std::size_t lower, std::size_t upper, std::size_t face) {
      edges_[bins_[lower]++] = {static_cast<std::uint32_t>(upper),
                                static_cast<std::uint32_t>(face)};
    });
    std::move_backward(bins_.begin(), bins_.end() - 1, bins_.end());
    bins_[0] = 0;
    for (std::size_t v = 0; v < vertices; ++v) {
      auto order = [](const HalfEdge& a, const HalfEdge& b) {
        return a.upper != b.upper ? a.upper < b.upper : a.face < b.face;
      };
      std::sort(edges_.begin() + bins_[v], edges_.begin() + bins_[v + 1], order);
    }
  }

  // The faces at an edge, in ascending order.
  std::span<const HalfEdge> faces_of(std::size_t lower, std::size_t upper) const {
    auto bin = std::span(edges_).subspan(bins_[lower], bins_[lower + 1] - bins_[lower]);
    auto first =
        std::lower_bound(bin.begin(), bin.end(), upper,
                         [](const HalfEdge& edge, std::size_t u) { return edge.upper < u; });
    auto last = first;
    while (last != bin.end() && last->upper == upper) ++last;
    return {first, last};
  }

  // The number of pairs; pairs that share several edges are counted several times.
  std::uint64_t count_pairs() const {
    std::uint64_t pairs = 0;
    for (std::size_t v = 0; v + 1 < bins_.size(); ++v) {
      std::uint64_t run = 0;
      for (std::size_t i = bins_[v]; i < bins_[v + 1]; ++i) {
        bool goes_on = i > bins_[v] && edges_[i].upper == edges_[i - 1].upper;
        run = goes_on ? run + 1 : 0;
        pairs += 2 * run;
      }
    }
    return pairs;
  }

  // Calls visit(lower, upper, face) for each different edge of each face that is not padding.
  template <typename Visit>
  static void for_each_edge(std::span<const Face> faces, const Visit& visit) {
    for (std::size_t i = 0; i < faces.size(); ++i) {
      for_each_edge_of(faces[i], [&](std::size_t a, std::size_t b) { visit(a, b, i); });
    }
  }
  template <typename Visit>
  static void for_each_edge_of(const Face& f, const Visit& visit) {
    if (f[0] < 0 || f[1] < 0 || f[2] < 0) return;
    auto edge = [&](std::int64_t a, std::int64_t b) {
      visit(static_cast<std::size_t>(std::min(a, b)), static_cast<std::size_t>(std::max(a, b)));
    };
    // A face with a repeated corner has one edge, or none.
    if (f[0] != f[1]) edge(f[0], f[1]);
    if (f[1] != f[2] && f[0] != f[2]) edge(f[1], f[2]);
    if (f[0] != f[2] && f[0] != f[1] && f[1] != f[2]) edge(f[0], f[2]);
  }

 private:
  std::vector<std::uint32_t> bins_;
  std::vector<HalfEdge> edges_;
};

Status too_much(std::string_view what, std::uint64_t value, std::int64_t limit) {
  return Error(std::string(what) + " " + std::to_string(value) + " is more than the " +
               std::to_string(limit) + " allowed")
      .stage("face edges");
}

}  // namespace

Status face_edges(std::span<const Face> faces, const FaceEdgeOptions& options,
                  std::vector<std::array<std::int64_t, 2>>& pairs) {
  pairs.clear();
  std::int64_t highest = -1;
  for (const Face& face : faces) {
    highest = std::max(highest, *std::max_element(face.begin(), face.end()));
  }
  // Edges and faces are counted in 32 bits.
  constexpr std::size_t most_faces = 0xFFFFFFFFU / 3;
  if (faces.size() > most_faces) return too_much("the number of faces", faces.size(), most_faces);
  if (highest >= options.max_vertices || highest >= 0xFFFFFFFFLL) {
    return too_much("vertex", static_cast<std::uint64_t>(highest), options.max_vertices);
  }
  EdgeIndex index(faces, static_cast<std::size_t>(highest + 1));
  std::uint64_t expected = index.count_pairs() + (options.self_pairs ? faces.size() : 0);
  if (expected > static_cast<std::uint64_t>(std::max<std::int64_t>(options.max_pairs, 0))) {
    return too_much("the number of pairs", expected, options.max_pairs);
  }
  pairs.reserve(expected);
  std::vector<std::int64_t> touching;
  for (std::size_t i = 0; i < faces.size(); ++i) {
    auto self = static_cast<std::int64_t>(i);
    touching.clear();
    if (*std::min_element(faces[i].begin(), faces[i].end()) < 0) continue;
    if (options.self_pairs) touching.push_back(self);
    EdgeIndex::for_each_edge_of(faces[i], [&](std::size_t lower, std::size_t upper) {
      for (const HalfEdge& other : index.faces_of(lower, upper)) {
        if (other.face != i) touching.push_back(other.face);
      }
    });
    std::sort(touching.begin(), touching.end());
    touching.erase(std::unique(touching.begin(), touching.end()), touching.end());
    for (std::int64_t other : touching) pairs.push_back({self, other});
  }
  return {};
}

}  // namespace millrace
