#include "tools/preprocess/media.h"

#include <millrace/datasets/folders/mesh_folder.h>

namespace millrace {

namespace {

class Meshes : public Medium {
 public:
  const char* name() const override { return "meshes"; }
  const char* about() const override {
    return "Meshes (obj, ply, stl, off, glb, gltf) as triangles: cleaned, scaled to [-1, 1] and in "
           "MeshGPT's order.";
  }
  const char* examples() const override {
    return R"(
Examples:
  preprocess meshes chairs/ --out chairs.arrow --max-faces 800
  preprocess meshes chairs/ --out chairs.arrow --face-edges --bins 128
  preprocess meshes chairs/ --out chairs.arrow --text optional       # chair.obj and chair.txt
Meshes differ in length, so they go into Arrow, as lists.
)";
  }
  void declare(const Options& options) override;
  Job make(const RunOptions& options, const std::shared_ptr<Pool>& pool) override;

 private:
  std::string input_, text_ = "none";
  std::int64_t max_faces_ = 0;
  int bins_ = 0;
  bool face_edges_ = false, no_normalize_ = false, no_sort_ = false;
  StoreOptions store_;
};

void Meshes::declare(const Options& options) {
  options.add("folder,--folder", input_, "folder with the meshes; subfolders are included")
      .required()
      .type_name("FOLDER");
  options
      .add("--max-faces", max_faces_,
           "maximum number of faces of a mesh; larger meshes count as errors; 0: no limit")
      .non_negative();
  options.flag("--face-edges", face_edges_, "also store the pairs of adjacent faces");
  options.add("--bins", bins_, "number of bins that coordinates are rounded to; 0: no rounding")
      .range(0, 65536);
  options.flag("--no-normalize", no_normalize_, "keep the coordinates of the file");
  options.flag("--no-sort", no_sort_, "keep the order of vertices and faces of the file");
  options
      .add("--text", text_,
           "text file beside each mesh (a.obj and a.txt): none, optional or required")
      .one_of({"none", "optional", "required"});
  declare_store(options, store_);
}

Job Meshes::make(const RunOptions&, const std::shared_ptr<Pool>& pool) {
  MeshFolderOptions options;
  options.mesh.normalize = !no_normalize_;
  options.mesh.sort = !no_sort_;
  options.mesh.bins = bins_;
  options.max_faces = max_faces_;
  options.face_edges = face_edges_;
  options.text = text_ == "none"       ? TextBeside::none
                 : text_ == "optional" ? TextBeside::optional
                                       : TextBeside::required;
  options.files = listing(pool);
  auto folder = std::make_shared<MeshFolder>(input_, options);
  auto path = [folder](std::int64_t i) { return folder->path(i); };
  Job job{.what = "meshes",
          .data = folder,
          .source = paired_sources(input_, path,
                                   [folder](std::int64_t i) { return folder->text_path(i); }),
          .options = {{"medium", "meshes"},
                      {"max_faces", std::to_string(max_faces_)},
                      {"face_edges", face_edges_ ? "yes" : "no"},
                      {"bins", std::to_string(bins_)},
                      {"normalize", no_normalize_ ? "no" : "yes"},
                      {"sort", no_sort_ ? "no" : "yes"},
                      {"text", text_}}};
  job.main_field = "faces";
  if (store_.encoded()) {
    job.data = keep_encoded(job.data, path, "mesh", store_);
    job.binary = {"mesh"};
    job.options["store"] = "encoded";
    job.options["check"] = store_.check;
  }
  job.varying_shard_rows = 256;
  return job;
}

}  // namespace

std::unique_ptr<Medium> meshes_medium() {
  return std::make_unique<Meshes>();
}

}  // namespace millrace
