#include "face_counts.h"
#include "text_embeddings.h"

#include <millrace/datasets/arrow/arrow_dataset.h>
#include <millrace/datasets/compose/field_routing.h>
#include <millrace/datasets/folders/media_files.h>
#include <millrace/datasets/listing/printable.h>
#include <millrace/datasets/mesh/face_edge_cache.h>
#include <millrace/datasets/mesh/mesh_data.h>
#include <millrace/pipeline/data/adapter.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>

namespace millrace {

using namespace detail;

namespace {

Error refusal(const std::string& why) {
  return Error("data_kwargs: " + why).kind(ErrorKind::usage);
}

bool wants(const MeshDataOptions& options, const char* name) {
  return std::ranges::find(options.data_kwargs, name) != options.data_kwargs.end();
}

void check(const MeshDataOptions& options) {
  static const std::set<std::string> known = {"vertices", "faces", "face_edges", "texts",
                                              "text_embeds"};
  std::set<std::string> seen;
  for (const std::string& name : options.data_kwargs) {
    if (!known.contains(name)) {
      throw refusal("there is no '" + name +
                    "' in meshes; there are vertices, faces, face_edges, texts and text_embeds");
    }
    if (!seen.insert(name).second) throw refusal("'" + name + "' is named twice");
  }
  for (const char* name : {"vertices", "faces"}) {
    if (!seen.contains(name)) throw refusal(std::string("a mesh needs '") + name + "'");
  }
  options.augment.check();
}

// The data set that samples come from, and the names of its meshes.
struct Source {
  AnyDataset data;
  std::vector<MeshName> names{};
  std::int64_t listed = 0;
};

struct Scratch {
  std::optional<Sample> inner;
  Mesh mesh;
  std::vector<std::array<std::int64_t, 2>> pairs;
};

void copy(const Array& value, const char* field, Sample& sample) {
  const Array& to = sample.resize(field, value.shape());
  if (value.bytes() > 0) std::memcpy(to.data(), value.data(), value.bytes());
}

template <typename Row>
std::vector<Row> rows_of(const Array& array) {
  std::vector<Row> rows(static_cast<std::size_t>(array.shape()[0]));
  if (!rows.empty()) std::memcpy(rows.data(), array.data(), array.bytes());
  return rows;
}

template <typename Row>
void put(Sample& sample, const char* field, const std::vector<Row>& rows) {
  const Array& to = sample.resize(
      field, {static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(Row{}.size())});
  if (!rows.empty()) std::memcpy(to.data(), rows.data(), to.bytes());
}

// Renames the fields of a data set to the model's inputs, augments the meshes, and adds face edges
// and text embeddings that the data set does not have.
class MeshSamples : public Adapter {
 public:
  MeshSamples(const Source& source, std::vector<std::int64_t> kept, const MeshDataOptions& options,
              const MeshAugmentation& augment, std::shared_ptr<FaceEdgeCache> edge_cache,
              std::shared_ptr<const TextEmbeddings> embeds);

  std::int64_t size() const override { return static_cast<std::int64_t>(kept_.size()); }
  const Schema& schema() const override { return schema_; }
  Status load(std::int64_t index, const LoadContext& context, Sample& sample) const override;
  std::vector<LeftOut> left_out() const override;

  std::vector<LeftOut> over_long{};

 protected:
  Target target(std::int64_t index, std::int64_t epoch) const override {
    return {.index = kept_[static_cast<std::size_t>(index)], .epoch = epoch};
  }

 private:
  Status load_mesh(const LoadContext& context, Scratch& scratch, Sample& sample) const;
  Status find_edges(Scratch& scratch) const;

  std::vector<std::int64_t> kept_;
  MeshAugmentation augment_;
  MeshOptions tidy_;
  std::int64_t max_faces_;
  bool has_edges_ = false, wants_edges_;
  std::string texts_, own_embeds_;             // field names of the wrapped data set; empty: none
  std::shared_ptr<FaceEdgeCache> edge_cache_;  // null: none
  std::shared_ptr<const TextEmbeddings> embeds_;  // null: none
  Schema schema_;
  std::shared_ptr<ReaderPool<Scratch>> scratch_ = std::make_shared<ReaderPool<Scratch>>();
};

FieldRouting routing_of(const MeshDataOptions& options, bool own_embeds) {
  std::vector<Route> routes = {{.to = "vertices", .dtype = DType::float32, .ranks = {2}},
                               {.to = "faces", .dtype = DType::int64, .ranks = {2}}};
  routes.push_back({.to = "face_edges", .dtype = DType::int64, .ranks = {2}, .required = false});
  if (wants(options, "texts")) {
    routes.push_back({.to = "texts", .from = {"texts", "caption"}, .text = true});
  }
  if (own_embeds) {
    routes.push_back({.to = "text_embeds", .dtype = DType::float32, .ranks = {2}});
  }
  return FieldRouting(std::move(routes));
}

MeshSamples::MeshSamples(const Source& source, std::vector<std::int64_t> kept,
                         const MeshDataOptions& options, const MeshAugmentation& augment,
                         std::shared_ptr<FaceEdgeCache> edge_cache,
                         std::shared_ptr<const TextEmbeddings> embeds)
    : Adapter(source.data),
      kept_(std::move(kept)),
      augment_(augment),
      tidy_{.normalize = false, .bins = options.bins},
      max_faces_(options.max_faces),
      wants_edges_(wants(options, "face_edges")),
      edge_cache_(std::move(edge_cache)),
      embeds_(std::move(embeds)) {
  const bool own_embeds = wants(options, "text_embeds") && !embeds_;
  FieldRouting routing = routing_of(options, own_embeds);
  const Schema& from = inner().schema();
  routing.bind(from);
  has_edges_ = routing.has("face_edges");
  if (wants(options, "texts")) texts_ = routing.field("texts");
  if (own_embeds) own_embeds_ = routing.field("text_embeds");
  std::vector<Field> fields = {{.name = "vertices", .dtype = DType::float32, .shape = {-1, 3}},
                               {.name = "faces", .dtype = DType::int64, .shape = {-1, 3}}};
  if (wants_edges_) {
    fields.push_back({.name = "face_edges", .dtype = DType::int64, .shape = {-1, 2}});
  }
  if (!texts_.empty()) fields.push_back(text_field("texts"));
  if (wants(options, "text_embeds")) {
    const std::int64_t dim = embeds_ ? embeds_->dim() : from[from.at(own_embeds_)].shape[1];
    fields.push_back({.name = "text_embeds", .dtype = DType::float32, .shape = {-1, dim}});
  }
  schema_ = Schema(std::move(fields));
}

std::vector<LeftOut> MeshSamples::left_out() const {
  std::vector<LeftOut> all = Adapter::left_out();
  all.insert(all.end(), over_long.begin(), over_long.end());
  return all;
}

Status MeshSamples::load(std::int64_t index, const LoadContext& context, Sample& sample) const {
  LoadContext inside = context;
  inside.index = target(index, context.epoch).index;
  auto scratch = scratch_->lend();
  if (!scratch->inner) scratch->inner.emplace(inner().schema());
  Sample& from = *scratch->inner;
  from.restart();
  if (Status status = inner().load(inside.index, inside, from); !status.ok()) return status;
  if (Status status = load_mesh(inside, *scratch, sample); !status.ok()) return status;
  if (!texts_.empty()) sample.set_text("texts", from.text(texts_));
  if (!own_embeds_.empty()) copy(from[own_embeds_], "text_embeds", sample);
  if (!embeds_) return {};
  return embeds_->load(inside.index, inside, schema_.at("text_embeds"), sample);
}

Status MeshSamples::load_mesh(const LoadContext& context, Scratch& scratch, Sample& sample) const {
  const Sample& from = *scratch.inner;
  const std::int64_t faces = from["faces"].shape()[0];
  if (max_faces_ > 0 && faces > max_faces_) {
    return Error(over_long_reason(faces, max_faces_)).stage("mesh");
  }
  const bool changes = augment_.any() || tidy_.bins > 0;
  if (!changes && (has_edges_ || !wants_edges_)) {
    for (const char* name : {"vertices", "faces", "face_edges"}) {
      if (schema_.find(name) >= 0) copy(from[name], name, sample);
    }
    return {};
  }
  Mesh& mesh = scratch.mesh;
  mesh.vertices = rows_of<std::array<float, 3>>(from["vertices"]);
  mesh.faces = rows_of<std::array<std::int64_t, 3>>(from["faces"]);
  mesh.counts = {};
  if (augment_.any()) {
    Random random = context.random("augment");
    augment_mesh(augment_, random, mesh);
  }
  if (changes) {
    if (Status status = tidy_mesh(tidy_, mesh); !status.ok()) return status;
  }
  put(sample, "vertices", mesh.vertices);
  put(sample, "faces", mesh.faces);
  if (!wants_edges_) return {};
  if (Status status = find_edges(scratch); !status.ok()) return status;
  put(sample, "face_edges", scratch.pairs);
  return {};
}

// Augmentation changes the faces every time, so caching their edges would only fill the disk.
Status MeshSamples::find_edges(Scratch& scratch) const {
  if (edge_cache_ && !augment_.any()) {
    return edge_cache_->find(scratch.mesh.faces, {}, scratch.pairs);
  }
  return face_edges(scratch.mesh.faces, {}, scratch.pairs);
}

Source open_folder(const std::filesystem::path& folder, const MeshDataOptions& options) {
  MeshFolderOptions given{.max_faces = options.max_faces,
                          .over_long = options.over_long,
                          .count_faces = true,
                          .cache = options.cache,
                          .face_edges = false};
  given.files.pool = options.pool;
  if (wants(options, "texts")) {
    given.text = options.texts_required ? TextBeside::required : TextBeside::optional;
  }
  auto meshes = std::make_shared<MeshFolder>(folder, given);
  Source source{meshes};
  bool any_text = false;
  for (std::int64_t i = 0; i < meshes->size(); ++i) {
    source.names.push_back(
        {meshes->path(i).lexically_relative(folder).generic_string(), meshes->place(i)});
    any_text = any_text || !meshes->text_path(i).empty();
  }
  if (wants(options, "texts") && !any_text) {
    throw refusal("'texts' is wanted, but no mesh has a text beside it (chair.obj and chair.txt)")
        .at(printable(folder));
  }
  source.listed = meshes->listed();
  return source;
}

Source open_cache(const std::filesystem::path& path, const MeshDataOptions& options) {
  auto rows = std::make_shared<ArrowDataset>(path, ArrowOptions{.length_of = "faces"});
  Source source{rows};
  source.listed = rows->size();
  const bool named = !options.text_embeds.empty() && options.text_embeds.extension() != ".npy";
  for (std::int64_t i = 0; i < rows->size(); ++i) {
    source.names.push_back({named ? rows->source(i) : "", i});
  }
  return source;
}

// Applies max_faces: a cache may hold larger meshes, because it was written with other options.
std::vector<std::int64_t> choose(const Source& source, const MeshDataOptions& options,
                                 std::vector<LeftOut>& over_long) {
  std::vector<std::int64_t> kept;
  const Dataset& data = *source.data;
  for (std::int64_t i = 0; i < data.size(); ++i) {
    const std::int64_t faces = data.length(i);
    if (options.max_faces == 0 || faces <= options.max_faces ||
        options.over_long == OverLong::error) {
      kept.push_back(i);
    } else {
      over_long.push_back({data.describe(i), over_long_reason(faces, options.max_faces)});
    }
  }
  return kept;
}

}  // namespace

MeshData open_meshes(const std::filesystem::path& path, const MeshDataOptions& options) {
  check(options);
  const bool is_cache = std::filesystem::is_regular_file(path);
  const Source source = is_cache ? open_cache(path, options) : open_folder(path, options);
  std::vector<LeftOut> over_long;
  std::vector<std::int64_t> kept = choose(source, options, over_long);
  if (kept.empty()) {
    throw Error("no mesh is left: all have more faces than max_faces (" +
                std::to_string(options.max_faces) + ")")
        .at(printable(path))
        .kind(ErrorKind::usage);
  }
  log_left_out(printable(path), over_long);
  std::shared_ptr<const TextEmbeddings> embeds;
  if (wants(options, "text_embeds") && !options.text_embeds.empty()) {
    embeds = std::make_shared<TextEmbeddings>(options.text_embeds, source.names, source.listed);
  }
  std::shared_ptr<FaceEdgeCache> edges;
  if (!options.cache.empty()) edges = std::make_shared<FaceEdgeCache>(options.cache);
  const auto samples = [&](const MeshAugmentation& augment) {
    auto made = std::make_shared<MeshSamples>(source, kept, options, augment, edges, embeds);
    made->over_long = over_long;
    return made;
  };
  const auto plain = samples({});
  const auto augmented = options.augment.any() ? samples(options.augment) : plain;
  Collations collate = collate_meshes(plain->schema());
  if (wants(options, "text_embeds")) {
    collate.emplace("text_embeds", Collate::pad_to_longest(0));
  }
  return {augmented, plain, std::move(collate)};
}

}  // namespace millrace
