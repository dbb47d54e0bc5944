// Meshes that differ a little each time they are seen: turned about the upright axis (y), stretched
// and shaken. It comes after cleaning and scaling, before snapping and sorting, so that what is
// learnt from has the order that MeshGPT wants.
//
//   Random random = context.random("augment");
//   augment_mesh({.scale_low = 0.75, .scale_high = 1.25}, random, mesh);
//   tidy_mesh({.normalize = false, .bins = 128}, mesh);
#pragma once

#include <millrace/decoders/mesh/mesh.h>
#include <millrace/pipeline/base/random.h>

namespace millrace {

struct MeshAugmentation {
  double scale_low = 1, scale_high = 1;  // each axis is stretched by a factor of its own
  double rotation = 0;                   // by up to so many degrees to either side
  double jitter = 0;                     // every vertex moves by up to so much along each axis

  bool any() const { return scale_low != 1 || scale_high != 1 || rotation != 0 || jitter != 0; }
  // Throws an Error of kind usage that names what is wrong.
  void check() const;
};

// A mesh that then reaches beyond [-1, 1] is made smaller as a whole until it does not.
void augment_mesh(const MeshAugmentation& options, Random& random, Mesh& mesh);

}  // namespace millrace
