// Meshes for the mesh trainers, from a folder of OBJ, PLY, GLB and other files or from a cache that
// `preprocess meshes` wrote. The fields have the names of the model's inputs.
//
//   MeshData meshes = open_meshes("chairs", {.data_kwargs = {"vertices", "faces", "face_edges"},
//                                            .max_faces = 800, .augment = {.jitter = 0.01}});
//   std::int64_t faces = meshes.plain->length(0);
//
// Give meshes.collate to LoaderOptions::collate. Batches then have vertices float32 [batch, n, 3]
// (padded with 0), faces int64 [batch, m, 3] and face_edges int64 [batch, e, 2] (padded with -1),
// texts (a.obj and a.txt, or the cache's caption), and text_embeds float32 [batch, t, d] (padded
// with 0; Batch::mask marks the real rows).
#pragma once

#include <millrace/datasets/compose/collations.h>
#include <millrace/datasets/folders/mesh_folder.h>
#include <millrace/decoders/mesh/mesh_augment.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace millrace {

struct MeshDataOptions {
  // The fields, named as in the Python trainers.
  std::vector<std::string> data_kwargs = {"vertices", "faces", "face_edges"};
  std::int64_t max_faces = 0;  // 0: no limit
  OverLong over_long = OverLong::leave_out;
  // Number of bins to quantize coordinates to; 0: not here, because the model or the cache did it.
  int bins = 0;
  MeshAugmentation augment{};   // applied to `augmented` only
  bool texts_required = false;  // leave out meshes without a text; false: their text is empty
  // Embeddings of the texts from a text encoder. Either .npy [meshes, d] or [meshes, t, d], where
  // row i belongs to mesh i in sorted order; or an Arrow file with a column "text_embeds" ([d] or
  // [t, d] floats) and a column "source" with the mesh, e.g. "chairs/a.obj". Empty: the column
  // "text_embeds" of the cache.
  std::filesystem::path text_embeds{};
  std::filesystem::path cache{};  // see MeshFolderOptions::cache
  std::shared_ptr<Pool> pool{};   // counts faces; null: Pool::shared()
};

struct MeshData {
  AnyDataset augmented, plain;  // the same samples; validate with the plain ones
  Collations collate;
};

// Throws an Error of kind usage if a field is not available. length() is the number of faces.
MeshData open_meshes(const std::filesystem::path& source, const MeshDataOptions& options);

}  // namespace millrace
