// Private: text embeddings from a file, matched to meshes by name or position.
#pragma once

#include <millrace/pipeline/data/dataset.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace millrace::detail {

// The name and position of a mesh in other files.
struct MeshName {
  std::string relative;    // path relative to the folder, e.g. "chairs/a.obj"
  std::int64_t place = 0;  // position in the sorted list of all meshes
};

class TextEmbeddings {
 public:
  // Throws an Error that names the first mesh without an embedding, or the problem with the file.
  // `listed` is the number of all meshes of the folder, including those that are left out.
  TextEmbeddings(const std::filesystem::path& path, const std::vector<MeshName>& meshes,
                 std::int64_t listed);

  std::int64_t dim() const { return dim_; }
  // Fills a field float32 [-1, dim].
  Status load(std::int64_t index, const LoadContext& context, int field, Sample& sample) const;

 private:
  std::shared_ptr<const Dataset> rows_;
  std::vector<std::int64_t> row_of_;  // by mesh
  std::int64_t dim_ = 0;
};

}  // namespace millrace::detail
