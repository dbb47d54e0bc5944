// Meshes as the trainers of mesh models take them: a folder of OBJ, PLY, GLB and so on, or a cache
// of `preprocess meshes`, as batches whose fields have the names that the model gives them.
//
//   MeshData meshes = open_meshes("chairs", {.data_kwargs = {"vertices", "faces", "face_edges"},
//                                            .max_faces = 800, .augment = {.jitter = 0.01}});
//   auto [train, rest] = random_split(meshes.augmented);
//   Loader loader(train, {.batch_size = 16, .shuffle = true, .bucket = {.window = 100},
//                         .collate = meshes.collate});
//
// Fields: vertices float32 [batch, n, 3] (padded with 0), faces int64 [batch, m, 3] and face_edges
// int64 [batch, e, 2] (padded with -1), texts (a.obj and a.txt, or the cache's caption), and
// text_embeds float32 [batch, t, d] (padded with 0: Batch::mask tells what is real).
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
  // Which fields, in the words of the trainers in Python.
  std::vector<std::string> data_kwargs = {"vertices", "faces", "face_edges"};
  std::int64_t max_faces = 0;  // 0: no limit
  OverLong over_long = OverLong::leave_out;
  // Snap coordinates to so many bins; 0: the model does that itself. A cache may be snapped
  // already.
  int bins = 0;
  MeshAugmentation augment{};   // of `augmented` alone
  bool texts_required = false;  // meshes without one are left out; otherwise theirs is empty
  // What a text encoder made of the texts: .npy [meshes, d] or [meshes, t, d], where row i belongs
  // to the i-th mesh by name; or Arrow with a column "text_embeds" (lists of d floats each, or of d
  // by t) and a column "source" that names the mesh, e.g. "chairs/a.obj". Empty: the cache's own.
  std::filesystem::path text_embeds{};
  std::filesystem::path cache{};  // see MeshFolderOptions::cache
  std::shared_ptr<Pool> pool{};   // to count faces with; null: Pool::shared()
};

struct MeshData {
  AnyDataset augmented, plain;  // the same samples; validation sees the plain ones
  Collations collate;
};

// Throws an Error of kind usage if a field cannot be had, saying why. All samples have a length():
// their faces.
MeshData open_meshes(const std::filesystem::path& source, const MeshDataOptions& options);

}  // namespace millrace
