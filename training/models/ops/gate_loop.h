// The gated linear recurrence of gateloop-transformer 0.2.4 along the second dimension: h =
// sigmoid(a) * h + kv, out = q * h. Private to training/models.
#pragma once

#include <millrace/training/models/video_tokenizer/video_attention.h>

#include <cstdint>
#include <memory>
#include <vector>

#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

namespace millrace {

// Algorithms for the recurrence. They differ only in the order of sums.
enum class GateLoopOrder : std::uint8_t {
  one_by_one,  // sequential; the fastest on a CPU
  pairs,       // associative scan, as in the package
  heinsen,     // cumulative sums of logarithms, as in the package with use_heinsen
};

// `qkva` [batch, length, 3 * dim]: q, kv and a, concatenated. `state` [batch, dim]: if not null,
// the initial h (undefined: 0), and on return the last h.
torch::Tensor gate_loop(const torch::Tensor& qkva, GateLoopOrder order,
                        torch::Tensor* state = nullptr);

// The state of every layer of a block while a sequence is continued; empty at the start.
using GateLoopStates = std::vector<torch::Tensor>;

// A stack of gate loops on x [batch, length, dim], each with a norm before it and a residual
// connection.
class GateLoopBlock : public torch::nn::Module {
 public:
  GateLoopBlock(std::int64_t dim, std::int64_t depth, GateLoopOrder order);
  // With `states`, x continues the sequence that the states have seen.
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
