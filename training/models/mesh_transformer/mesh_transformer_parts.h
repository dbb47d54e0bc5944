// Private types of MeshTransformerImpl. Private to training/models.
#pragma once

#include "decoder_layers.h"

#include <millrace/training/models/mesh_transformer/mesh_transformer.h>
#include <millrace/training/models/ops/gate_loop.h>

namespace millrace {

struct MeshTransformerImpl::Text {
  DecoderContext context{};
  torch::Tensor pooled{};  // [batch, dim_text]: the mean over the words
};

// The state of a generation.
struct MeshTransformerImpl::State {
  bool begun = false;
  DecoderCache coarse{}, fine{};  // `fine` covers only the last face
  GateLoopStates coarse_loops{}, fine_loops{};
};

}  // namespace millrace
