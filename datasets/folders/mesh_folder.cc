#include "media_files.h"

#include <millrace/datasets/captions/caption_reader.h>
#include <millrace/datasets/folders/mesh_folder.h>
#include <millrace/datasets/listing/printable.h>
#include <millrace/datasets/mesh/face_counts.h>
#include <millrace/datasets/mesh/face_edge_cache.h>

#include <cstring>

namespace millrace {

using namespace detail;

namespace {

struct MeshScratch {
  Mesh mesh;
  std::vector<std::array<std::int64_t, 2>> pairs;
};

template <typename T, std::size_t n>
void put(Sample& sample, const char* field, const std::vector<std::array<T, n>>& rows) {
  const Array& to = sample.resize(field, {static_cast<std::int64_t>(rows.size()), n});
  if (!rows.empty()) std::memcpy(to.data(), rows.data(), rows.size() * sizeof rows[0]);
}

std::vector<std::string> wanted(const MeshFolderOptions& options) {
  return options.files.extensions.empty() ? MeshFolder::extensions() : options.files.extensions;
}

Schema schema_of(const MeshFolderOptions& options) {
  std::vector<Field> fields = {{.name = "vertices", .dtype = DType::float32, .shape = {-1, 3}},
                               {.name = "faces", .dtype = DType::int64, .shape = {-1, 3}}};
  if (options.face_edges) {
    fields.push_back({.name = "face_edges", .dtype = DType::int64, .shape = {-1, 2}});
  }
  if (options.text != TextBeside::none) add_caption_fields(fields, options.captions);
  return Schema(std::move(fields));
}

}  // namespace

struct MeshFolder::Readers : ReaderPool<MeshScratch> {};

const std::vector<std::string>& MeshFolder::extensions() {
  static const std::vector<std::string> known = {"obj", "ply", "stl", "off", "glb", "gltf"};
  return known;
}

MeshFolder::MeshFolder(const std::filesystem::path& folder, MeshFolderOptions options)
    : options_(std::move(options)),
      schema_(schema_of(options_)),
      readers_(std::make_shared<Readers>()) {
  StemPairs pairs = pair_by_stem(folder, options_.files, wanted(options_), options_.text);
  refuse_empty(pairs.media, "meshes", wanted(options_));
  refuse_no_pairs(pairs, folder);
  const bool leave_out = options_.max_faces > 0 && options_.over_long == OverLong::leave_out;
  std::vector<std::int64_t> lengths;
  if (options_.count_faces || leave_out) {
    const auto pool = options_.files.pool ? options_.files.pool : Pool::shared();
    lengths = count_faces(pairs, options_.mesh, options_.cache, *pool);
    if (leave_out) leave_out_over_long(pairs, lengths, options_.max_faces);
  }
  pairs_ = std::make_shared<const StemPairs>(std::move(pairs));
  lengths_ = std::make_shared<const std::vector<std::int64_t>>(std::move(lengths));
  if (!options_.cache.empty() && options_.face_edges) {
    edge_cache_ = std::make_shared<FaceEdgeCache>(options_.cache);
  }
}

std::int64_t MeshFolder::size() const {
  return pairs_->size();
}

Status MeshFolder::load(std::int64_t index, const LoadContext&, Sample& sample) const {
  if (options_.text != TextBeside::none) {
    Status status = load_caption(*pairs_, index, options_.captions, sample);
    if (!status.ok()) return status;
  }
  const std::filesystem::path from = path(index);
  auto scratch = readers_->lend();
  Mesh& mesh = scratch->mesh;
  if (Status status = decode_mesh_file(from, options_.mesh, mesh); !status.ok()) return status;
  const auto faces = static_cast<std::int64_t>(mesh.faces.size());
  if (options_.max_faces > 0 && faces > options_.max_faces) {
    return Error(over_long_reason(faces, options_.max_faces)).at(printable(from)).stage("mesh");
  }
  if (options_.face_edges) {
    Status status = edge_cache_ ? edge_cache_->find(mesh.faces, options_.edges, scratch->pairs)
                                : face_edges(mesh.faces, options_.edges, scratch->pairs);
    if (!status.ok()) return at_file(std::move(status), from);
    put(sample, "face_edges", scratch->pairs);
  }
  put(sample, "vertices", mesh.vertices);
  put(sample, "faces", mesh.faces);
  return {};
}

std::string MeshFolder::describe(std::int64_t index) const {
  return printable(path(index));
}
std::vector<LeftOut> MeshFolder::left_out() const {
  return pairs_->left_out;
}
std::int64_t MeshFolder::cost(std::int64_t index, std::int64_t /*epoch*/) const {
  return cost_of(pairs_->media, pairs_->media_of[static_cast<std::size_t>(index)]);
}
std::int64_t MeshFolder::length(std::int64_t index, std::int64_t /*epoch*/) const {
  return lengths_->empty() ? 0 : (*lengths_)[static_cast<std::size_t>(index)];
}
std::int64_t MeshFolder::place(std::int64_t index) const {
  return pairs_->media_of[static_cast<std::size_t>(index)];
}
std::int64_t MeshFolder::listed() const {
  return pairs_->media.size();
}
std::filesystem::path MeshFolder::path(std::int64_t index) const {
  return pairs_->media_path(index);
}
std::filesystem::path MeshFolder::text_path(std::int64_t index) const {
  return pairs_->text_path(index);
}

}  // namespace millrace
