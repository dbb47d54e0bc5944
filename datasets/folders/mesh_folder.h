// The meshes of a folder as triangles, cleaned, scaled and in MeshGPT's order, with the pairs of
// faces that touch, and if wanted the text beside each: chair.obj and chair.txt.
//
//   MeshFolder meshes("meshes", {.max_faces = 800, .text = TextBeside::optional});
//   Loader loader(meshes, {.batch_size = 16, .collate = collate_meshes(meshes.schema())});
#pragma once

#include <millrace/datasets/captions/caption_options.h>
#include <millrace/datasets/listing/file_list.h>
#include <millrace/decoders/mesh/face_edges.h>
#include <millrace/decoders/mesh/mesh.h>
#include <millrace/pipeline/data/dataset.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace millrace {

// What becomes of a mesh of more than max_faces.
enum class OverLong {
  error,      // it is a bad sample, like one that cannot be decoded
  leave_out,  // it is no sample: left_out() has it, with its name
};

struct MeshFolderOptions {
  // Cleaning, scaling, order, bins and limits. `hint` and `folder` are taken from each file.
  MeshOptions mesh{};
  std::int64_t max_faces = 0;  // 0: no such limit
  OverLong over_long = OverLong::error;
  // Know how many faces each mesh has (length()), so that batches can be of similar length. Every
  // file is decoded once when the folder is opened, in parallel; so it is for OverLong::leave_out.
  bool count_faces = false;
  // A folder that remembers the numbers of faces, by file, and face_edges, by content, for the next
  // time; empty: nothing is remembered.
  std::filesystem::path cache{};
  bool face_edges = true;  // with the field "face_edges"
  FaceEdgeOptions edges{};
  TextBeside text = TextBeside::none;
  CaptionOptions captions{};
  FileListOptions files{};  // `extensions`, if any, instead of ours
};

// Fields: vertices float32 [-1, 3], faces int64 [-1, 3], face_edges int64 [-1, 2] and, where asked
// for, caption text and tokens int64.
class MeshFolder : public Dataset {
 public:
  explicit MeshFolder(const std::filesystem::path& folder, MeshFolderOptions options = {});

  std::int64_t size() const override;
  const Schema& schema() const override { return schema_; }
  Status load(std::int64_t index, const LoadContext& context, Sample& sample) const override;
  std::string describe(std::int64_t index) const override;
  std::vector<LeftOut> left_out() const override;
  // Faces, if they were counted; 0: they were not, or it cannot be decoded.
  std::int64_t length(std::int64_t index) const override;

  std::filesystem::path path(std::int64_t index) const;
  // Its place among all meshes of the folder, by name, those that are left out included; and how
  // many these are.
  std::int64_t place(std::int64_t index) const;
  std::int64_t listed() const;
  // Empty where there is none.
  std::filesystem::path text_path(std::int64_t index) const;
  static const std::vector<std::string>& extensions();

 private:
  struct Readers;
  MeshFolderOptions options_;
  Schema schema_;
  std::shared_ptr<const struct StemPairs> pairs_;
  std::shared_ptr<const std::vector<std::int64_t>> lengths_;  // empty: not counted
  std::shared_ptr<class FaceEdgeCache> edge_cache_;
  std::shared_ptr<Readers> readers_;
};

}  // namespace millrace
