#include "tools/preprocess/media.h"

#include <millrace/datasets/folders/mesh_folder.h>

#include <CLI/CLI.hpp>

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
  void declare(CLI::App& app) override;
  Job make(const RunOptions& options, const std::shared_ptr<Pool>& pool) override;

 private:
  std::string input_, text_ = "none";
  std::int64_t max_faces_ = 0;
  int bins_ = 0;
  bool face_edges_ = false, no_normalize_ = false, no_sort_ = false;
  StoreOptions store_;
};

void Meshes::declare(CLI::App& app) {
  app.add_option("folder,--folder", input_, "the meshes")->required()->type_name("FOLDER");
  app.add_option("--max-faces", max_faces_, "meshes of more are left out as errors; 0: none")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_flag("--face-edges", face_edges_, "also the pairs of faces that touch");
  app.add_option("--bins", bins_, "snap coordinates to so many bins; 0: as they are")
      ->check(CLI::Range(0, 65536))
      ->capture_default_str();
  app.add_flag("--no-normalize", no_normalize_, "leave coordinates as the file has them");
  app.add_flag("--no-sort", no_sort_, "leave vertices and faces in the file's order");
  app.add_option("--text", text_, "the text beside each: none, optional or required")
      ->check(CLI::IsMember({"none", "optional", "required"}))
      ->capture_default_str();
  declare_store(app, store_);
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
