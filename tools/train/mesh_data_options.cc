#include "tools/train/mesh_data_options.h"

namespace millrace {

void add_mesh_data_options(CLI::App& app, MeshSourceOptions& o, const char* fields) {
  auto add = [&](const char* name, auto& value, const char* text) {
    return declare(app, name, value, text, "Data");
  };
  add("--data-kwargs", o.data.data_kwargs, fields);
  app.add_option("--face-edge-cache", o.face_edge_cache,
                 "a folder that remembers which faces touch, and how many there are")
      ->type_name("FOLDER")
      ->group("Data");
  add("--bucket-window", o.bucket_window,
      "meshes of so many batches are sorted by length, so that little is padding; 0: not")
      ->check(CLI::NonNegativeNumber);
  add("--augment-scale-low", o.data.augment.scale_low, "each axis is stretched by at least this");
  add("--augment-scale-high", o.data.augment.scale_high, "and at most this");
  add("--augment-rotation", o.data.augment.rotation, "turned by up to so many degrees");
  add("--augment-jitter", o.data.augment.jitter, "every vertex moves by up to so much");
}

}  // namespace millrace
