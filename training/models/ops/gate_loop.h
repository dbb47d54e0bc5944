// The gated recurrence of gateloop-transformer 0.2.4, along the second dimension:
// h = sigmoid(a) * h + kv, out = q * h. Private to training/models.
#pragma once

#include <millrace/training/models/video_tokenizer/video_attention.h>

#include <cstdint>
#include <memory>
#include <vector>

#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

namespace millrace {

// How the states are summed: the same recurrence, each in its own order.
enum class GateLoopOrder : std::uint8_t {
  one_by_one,  // soonest, on a CPU
  pairs,       // pairs of pairs, as in the package
  heinsen,     // in the logarithm, as in the package with use_heinsen
};

// `qkva` [batch, length, 3 * dim]: q, kv and a side by side. `state` [batch, dim]: h before the
// first, or undefined: 0; the last h is left there, if it is given.
torch::Tensor gate_loop(const torch::Tensor& qkva, GateLoopOrder order,
                        torch::Tensor* state = nullptr);

// h before what comes next, of every layer of a block; empty at the beginning.
using GateLoopStates = std::vector<torch::Tensor>;

// Layers of it, each added to what came in: x [batch, length, dim] with the norm in front.
class GateLoopBlock : public torch::nn::Module {
 public:
  GateLoopBlock(std::int64_t dim, std::int64_t depth, GateLoopOrder order);
  // With states, x follows what they have seen.
  torch::Tensor forward(torch::Tensor x, GateLoopStates* states = nullptr);

 private:
  struct Layer {
    std::shared_ptr<RmsNorm> norm;
    torch::nn::Linear to_qkva;
  };
  std::vector<Layer> layers_;
  GateLoopOrder order_;
};

}  // namespace millrace
