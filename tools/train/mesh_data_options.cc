#include "tools/train/mesh_data_options.h"

namespace millrace {

void add_mesh_data_options(const Options& options, MeshSourceOptions& o, const char* fields) {
  Options data = options.group("Data");
  data.add("--data-kwargs", o.data.data_kwargs, fields);
  data.add("--face-edge-cache", o.face_edge_cache,
           "folder that caches the pairs of adjacent faces of each mesh")
      .type_name("FOLDER");
  data.add("--bucket-window", o.bucket_window,
           "number of batches within which meshes are sorted by length, to reduce padding; 0: no "
           "sorting")
      .non_negative();
  data.add("--augment-scale-low", o.data.augment.scale_low,
           "minimum random scale factor of each axis");
  data.add("--augment-scale-high", o.data.augment.scale_high,
           "maximum random scale factor of each axis");
  data.add("--augment-rotation", o.data.augment.rotation,
           "maximum random rotation around the vertical axis, in degrees");
  data.add("--augment-jitter", o.data.augment.jitter,
           "maximum random shift of each vertex, in units of the normalised mesh");
}

}  // namespace millrace
