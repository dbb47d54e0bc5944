#include <millrace/datasets/caches/checksum.h>
#include <millrace/datasets/listing/derived_file.h>
#include <millrace/datasets/listing/printable.h>
#include <millrace/datasets/mesh/face_edge_cache.h>
#include <millrace/pipeline/base/log.h>

#include <cstring>
#include <string>

namespace millrace {

using namespace detail;

namespace {

constexpr std::string_view edges_kind = "MREDGES1";

using Face = std::array<std::int64_t, 3>;
using Pair = std::array<std::int64_t, 2>;

std::string_view bytes_of(const auto& rows) {
  return {reinterpret_cast<const char*>(rows.data()), rows.size() * sizeof rows[0]};
}

// The file also stores the faces, so that two meshes with the same hash are not confused.
std::optional<std::vector<Pair>> read(const std::filesystem::path& path,
                                      std::span<const Face> faces) {
  const std::optional<std::string> payload = read_derived_file(path, edges_kind);
  const std::string_view key = bytes_of(faces);
  if (!payload || !payload->starts_with(key)) return std::nullopt;
  const std::string_view rest = std::string_view(*payload).substr(key.size());
  if (rest.size() % sizeof(Pair) != 0) return std::nullopt;
  std::vector<Pair> pairs(rest.size() / sizeof(Pair));
  if (!pairs.empty()) std::memcpy(pairs.data(), rest.data(), rest.size());
  return pairs;
}

}  // namespace

FaceEdgeCache::FaceEdgeCache(std::filesystem::path folder) : folder_(std::move(folder)) {
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (error) {
    throw Error("cannot create the folder of face edges (" + error.message() + ")")
        .at(printable(folder_))
        .kind(ErrorKind::usage);
  }
}

Status FaceEdgeCache::find(std::span<const Face> faces, const FaceEdgeOptions& options,
                           std::vector<Pair>& pairs) {
  const std::filesystem::path path = folder_ / (to_hex(checksum_of(bytes_of(faces))) +
                                                (options.self_pairs ? ".edges" : ".others"));
  if (auto known = read(path, faces);
      known && static_cast<std::int64_t>(known->size()) <= options.max_pairs) {
    pairs = *std::move(known);
    ++found_;
    return {};
  }
  if (Status status = face_edges(faces, options, pairs); !status.ok()) return status;
  ++computed_;
  std::string payload(bytes_of(faces));
  payload += bytes_of(pairs);
  if (Status status = write_derived_file(path, edges_kind, payload);
      !status.ok() && !warned_.exchange(true)) {
    log(LogLevel::warning,
        printable(path) + ": " + status.error().reason() + "; face edges are computed each time");
  }
  return {};
}

}  // namespace millrace
