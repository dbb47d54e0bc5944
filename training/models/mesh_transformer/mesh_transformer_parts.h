// What MeshTransformerImpl keeps between its functions. Private to training/models.
#pragma once

#include "decoder_layers.h"

#include <millrace/training/models/mesh_transformer/mesh_transformer.h>
#include <millrace/training/models/ops/gate_loop.h>

namespace millrace {

struct MeshTransformerImpl::Text {
  DecoderContext context{};
  torch::Tensor pooled{};  // [batch, dim_text]: the mean of its words
};

// Of meshes that are half written.
struct MeshTransformerImpl::State {
  bool begun = false;
  DecoderCache coarse{}, fine{};  // `fine` is of the last face alone
  GateLoopStates coarse_loops{}, fine_loops{};
};

}  // namespace millrace
