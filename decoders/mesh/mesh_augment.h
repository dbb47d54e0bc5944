// Random augmentation of meshes: rotation about the vertical axis (y), scaling and jitter. Apply it
// after cleaning and scaling, and before rounding and sorting, so that the result has MeshGPT's
// order.
//
//   Mesh mesh;
//   Random random(/*seed=*/42, /*epoch=*/0, /*index=*/7, "augment");
//   augment_mesh({.scale_low = 0.75, .scale_high = 1.25}, random, mesh);
//   Status status = tidy_mesh({.normalize = false, .bins = 128}, mesh);
#pragma once

#include <millrace/decoders/mesh/mesh.h>
#include <millrace/pipeline/base/random.h>

namespace millrace {

struct MeshAugmentation {
  double scale_low = 1, scale_high = 1;  // range of the random scale, drawn for each axis
  double rotation = 0;                   // largest angle in degrees, in both directions
  double jitter = 0;                     // largest move of a vertex along each axis

  bool any() const { return scale_low != 1 || scale_high != 1 || rotation != 0 || jitter != 0; }
  // Throws an Error of kind usage that names the wrong option.
  void check() const;
};

// A mesh that exceeds [-1, 1] afterwards is scaled down as a whole.
void augment_mesh(const MeshAugmentation& options, Random& random, Mesh& mesh);

}  // namespace millrace
