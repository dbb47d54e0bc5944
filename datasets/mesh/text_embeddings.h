// Private: embeddings of texts that somebody else made, found for each mesh.
#pragma once

#include <millrace/pipeline/data/dataset.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace millrace {

// What a mesh is called in other files.
struct MeshName {
  std::string relative;    // "chairs/a.obj", below the folder
  std::int64_t place = 0;  // among all meshes, by name
};

class MeshEmbeds {
 public:
  // Throws an Error that names the first mesh that has none, or what is wrong with the file.
  // `listed`: how many meshes the folder has, those that are left out included.
  MeshEmbeds(const std::filesystem::path& path, const std::vector<MeshName>& meshes,
             std::int64_t listed);

  std::int64_t dim() const { return dim_; }
  // Fills a field float32 [-1, dim].
  Status load(std::int64_t index, const LoadContext& context, int field, Sample& sample) const;

 private:
  std::shared_ptr<const Dataset> rows_;
  std::vector<std::int64_t> row_of_;  // by mesh
  std::int64_t dim_ = 0;
};

}  // namespace millrace
