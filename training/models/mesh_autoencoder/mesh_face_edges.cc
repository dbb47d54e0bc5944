#include "mesh_face_edges.h"

#include <millrace/decoders/mesh/face_edges.h>
#include <millrace/training/device/torch_api.h>

#include <algorithm>
#include <array>
#include <vector>

namespace millrace {

namespace {

std::vector<std::array<std::int64_t, 2>> pairs_of_triangles(const torch::Tensor& faces) {
  std::vector<std::array<std::int64_t, 3>> list(static_cast<std::size_t>(faces.size(0)));
  std::copy_n(faces.data_ptr<std::int64_t>(), faces.numel(), list.data()->data());
  std::vector<std::array<std::int64_t, 2>> pairs;
  Status status = face_edges(list, {}, pairs);
  if (!status.ok()) throw std::move(status).error();
  return pairs;
}

// Finds pairs of quads that share two vertices with the function for triangles: each quad is
// replaced by six triangles, one per edge or diagonal, whose third corner is unique to the quad.
std::vector<std::array<std::int64_t, 2>> pairs_of_quads(const torch::Tensor& faces) {
  const auto* corner = faces.data_ptr<std::int64_t>();
  std::vector<std::array<std::int64_t, 3>> list;
  std::int64_t own = faces.numel() == 0 ? 0 : faces.max().item<std::int64_t>() + 1;
  for (std::int64_t i = 0; i < faces.size(0); ++i) {
    for (std::int64_t a = 0; a < 4; ++a) {
      for (std::int64_t b = a + 1; b < 4; ++b)
        list.push_back({corner[4 * i + a], corner[4 * i + b], own});
    }
    own += 1;
  }
  std::vector<std::array<std::int64_t, 2>> pairs;
  Status status = face_edges(list, {}, pairs);
  if (!status.ok()) throw std::move(status).error();
  for (auto& pair : pairs) pair = {pair[0] / 6, pair[1] / 6};
  std::ranges::sort(pairs);
  pairs.erase(std::ranges::unique(pairs).begin(), pairs.end());
  return pairs;
}

}  // namespace

torch::Tensor find_face_edges(const torch::Tensor& faces, std::int64_t pad_id) {
  const torch::Tensor host = faces.to(torch::kCPU, torch::kInt64).contiguous();
  std::vector<torch::Tensor> rows;
  std::int64_t longest = 0;
  for (const torch::Tensor& one : host.unbind(0)) {
    const auto pairs = one.size(1) == 3 ? pairs_of_triangles(one) : pairs_of_quads(one);
    const auto count = static_cast<std::int64_t>(pairs.size());
    rows.push_back(torch::empty({count, 2}, torch::kInt64));
    std::copy_n(pairs.data()->data(), 2 * count, rows.back().data_ptr<std::int64_t>());
    longest = std::max(longest, count);
  }
  for (torch::Tensor& row : rows) {
    row = torch::constant_pad_nd(row, {0, 0, 0, longest - row.size(0)}, pad_id);
  }
  return torch::stack(rows).to(faces.device());
}

}  // namespace millrace
