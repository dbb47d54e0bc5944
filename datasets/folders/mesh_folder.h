// The meshes of a folder as triangles: cleaned, scaled and sorted as for MeshGPT, with the pairs of
// adjacent faces and optionally a caption from the text file beside each (chair.obj and chair.txt).
//
//   MeshFolder meshes("meshes", {.max_faces = 800, .text = TextBeside::optional});
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

class FaceEdgeCache;
namespace detail {
struct StemPairs;
}

// What happens to a mesh with more than max_faces faces.
enum class OverLong {
  error,      // its sample fails to load
  leave_out,  // it is not a sample; left_out() lists it
};

struct MeshFolderOptions {
  // Cleaning, scaling, sorting, bins and limits. `hint` and `folder` are set for each file.
  MeshOptions mesh{};
  std::int64_t max_faces = 0;  // 0: no limit
  OverLong over_long = OverLong::error;
  // Count the faces of every mesh, so that length() returns them and batches can have similar
  // lengths. The constructor decodes every file once, in parallel. OverLong::leave_out does too.
  bool count_faces = false;
  // A folder in which face counts (by file) and face_edges (by content) are cached for the next
  // run; empty: no cache.
  std::filesystem::path cache{};
  bool face_edges = true;  // add the field "face_edges"
  FaceEdgeOptions edges{};
  TextBeside text = TextBeside::none;
  CaptionOptions captions{};
  FileListOptions files{};  // `extensions` replaces extensions() unless it is empty
};

// Fields: vertices float32 [-1, 3], faces int64 [-1, 3] and, as the options say, face_edges int64
// [-1, 2], caption (text) and tokens (int64).
class MeshFolder : public Dataset {
 public:
  explicit MeshFolder(const std::filesystem::path& folder, MeshFolderOptions options = {});

  std::int64_t size() const override;
  const Schema& schema() const override { return schema_; }
  Status load(std::int64_t index, const LoadContext& context, Sample& sample) const override;
  std::string describe(std::int64_t index) const override;
  std::vector<LeftOut> left_out() const override;
  // The size of the file in bytes.
  std::int64_t cost(std::int64_t index, std::int64_t epoch = 0) const override;
  // The number of faces; 0: not counted, or the file cannot be decoded.
  std::int64_t length(std::int64_t index, std::int64_t epoch = 0) const override;

  std::filesystem::path path(std::int64_t index) const;
  // The mesh's position in the sorted list of all meshes of the folder, including those that are
  // left out; and the length of that list.
  std::int64_t place(std::int64_t index) const;
  std::int64_t listed() const;
  // Empty if the mesh has no text.
  std::filesystem::path text_path(std::int64_t index) const;
  static const std::vector<std::string>& extensions();

 private:
  struct Readers;
  MeshFolderOptions options_;
  Schema schema_;
  std::shared_ptr<const detail::StemPairs> pairs_;
  std::shared_ptr<const std::vector<std::int64_t>> lengths_;  // empty: not counted
  std::shared_ptr<FaceEdgeCache> edge_cache_;
  std::shared_ptr<Readers> readers_;
};

}  // namespace millrace
