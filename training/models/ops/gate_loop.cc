#include "gate_loop.h"

#include "decoder_functions.h"
#include "gate_loop_kernel.h"
#include "linear_function.h"

#include <millrace/training/device/torch_api.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <ATen/Parallel.h>

namespace millrace {

namespace nn = torch::nn;

namespace {

struct Recurrence {
  torch::Tensor gates, states;  // [sequences, length, 1]

  // Composition: first `this`, then `next`.
  Recurrence then(const Recurrence& next) const {
    return {next.gates * gates, torch::addcmul(next.states, next.gates, states)};
  }
  Recurrence every_other(std::int64_t first, std::int64_t end) const {
    return {gates.slice(1, first, end, 2), states.slice(1, first, end, 2)};
  }
};

torch::Tensor interleave(const torch::Tensor& first, const torch::Tensor& even,
                         const torch::Tensor& odd) {
  const torch::Tensor a = torch::cat({first, even}, 1);
  const bool longer = a.size(1) > odd.size(1);
  const torch::Tensor b = longer ? torch::pad(odd, {0, 0, 0, 1}) : odd;
  return torch::stack({a, b}, 2).flatten(1, 2).slice(1, 0, a.size(1) + odd.size(1));
}

// All states of h = gate * h + state, by the package's associative scan.
Recurrence scan_in_pairs(const Recurrence& all) {
  const std::int64_t length = all.gates.size(1);
  if (length < 2) return all;
  const Recurrence odd =
      scan_in_pairs(all.every_other(0, length - 1).then(all.every_other(1, length)));
  const std::int64_t before = length % 2 == 0 ? length / 2 - 1 : length / 2;
  const Recurrence even =
      Recurrence{odd.gates.slice(1, 0, before), odd.states.slice(1, 0, before)}.then(
          all.every_other(2, length));
  return {interleave(all.gates.slice(1, 0, 1), even.gates, odd.gates),
          interleave(all.states.slice(1, 0, 1), even.states, odd.states)};
}

// All states by cumulative sums of logarithms (Heinsen). Logarithms are complex, because states may
// be negative.
torch::Tensor scan_in_logarithm(const Recurrence& all) {
  constexpr double smallest = 1e-20;
  const torch::Tensor gates = all.gates.clamp_min(smallest).log();
  const torch::Tensor states = all.states.sign() * all.states.abs().clamp_min(smallest);
  const torch::Tensor sums = gates.cumsum(1);
  const torch::Tensor above = torch::logcumsumexp(states.to(torch::kComplexFloat).log() - sums, 1);
  return torch::real((sums + above).exp());
}

// With the operations and shapes of the package.
torch::Tensor loop_reference(const torch::Tensor& qkva, GateLoopOrder order, torch::Tensor* state) {
  const std::int64_t batch = qkva.size(0), length = qkva.size(1), dim = qkva.size(2) / 3;
  const std::vector<torch::Tensor> parts = qkva.reshape({batch, length, 3, dim})
                                               .permute({2, 0, 3, 1})
                                               .reshape({3, batch * dim, length, 1})
                                               .unbind(0);
  Recurrence all{parts[2].sigmoid(), parts[1]};
  const bool continues = state != nullptr && state->defined();
  if (continues) {  // one more element that represents the earlier tokens
    const torch::Tensor before = state->reshape({batch * dim, 1, 1});
    all = {torch::cat({torch::ones_like(before), all.gates}, 1),
           torch::cat({before, all.states}, 1)};
  }
  torch::Tensor states =
      order == GateLoopOrder::heinsen ? scan_in_logarithm(all) : scan_in_pairs(all).states;
  if (continues) states = states.slice(1, 1);
  if (state != nullptr) *state = states.select(1, length - 1).reshape({batch, dim});
  return (parts[0] * states).reshape({batch, dim, length}).transpose(1, 2);
}

// Calls body(row, strip) for all rows and channels, in parallel.
template <class Body>
void for_each_strip(const torch::Tensor& qkva, const torch::Tensor& gates, const Body& body) {
  const std::int64_t rows = gates.size(0), length = gates.size(1), dim = gates.size(2);
  const float* in = qkva.const_data_ptr<float>();
  const float* gate = gates.const_data_ptr<float>();
  const std::int64_t strips = (dim + gate_loop_strip - 1) / gate_loop_strip;
  at::parallel_for(0, rows * strips, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t row = i / strips, first = i % strips * gate_loop_strip;
      body(row, GateLoopStrip{.length = length,
                              .dim = dim,
                              .first = first,
                              .end = std::min(first + gate_loop_strip, dim),
                              .qkva = in + row * length * dim * 3,
                              .gates = gate + row * length * dim});
    }
  });
}

torch::Tensor gates_of(const torch::Tensor& qkva) {
  return qkva.slice(-1, qkva.size(-1) / 3 * 2).sigmoid().contiguous();
}

struct LoopResult {
  torch::Tensor out, states;
};

LoopResult run_loop(const torch::Tensor& qkva, const torch::Tensor& gates,
                    const torch::Tensor& before) {
  LoopResult looped{torch::empty_like(gates), torch::empty_like(gates)};
  const std::int64_t row_size = gates.size(1) * gates.size(2), dim = gates.size(2);
  const float* start = before.defined() ? before.const_data_ptr<float>() : nullptr;
  float* out = looped.out.data_ptr<float>();
  float* states = looped.states.data_ptr<float>();
  for_each_strip(qkva, gates, [=](std::int64_t row, const GateLoopStrip& strip) {
    gate_loop_forward(strip, start != nullptr ? start + row * dim : nullptr,
                      states + row * row_size, out + row * row_size);
  });
  return looped;
}

// Sequential forward and backward passes over the length.
class LoopFunction : public torch::autograd::Function<LoopFunction> {
 public:
  static torch::Tensor forward(torch::autograd::AutogradContext* context,
                               const torch::Tensor& qkva) {
    const torch::Tensor dense = qkva.contiguous(), gates = gates_of(dense);
    const LoopResult looped = run_loop(dense, gates, {});
    context->save_for_backward({dense, gates, looped.states});
    return looped.out;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const torch::autograd::variable_list saved = context->get_saved_variables();
    const torch::Tensor given = gradients[0].contiguous();
    torch::Tensor result = torch::empty_like(saved[0]);
    const std::int64_t row_size = given.size(1) * given.size(2);
    const float* states = saved[2].const_data_ptr<float>();
    const float* of_out = given.const_data_ptr<float>();
    float* gradient = result.data_ptr<float>();
    for_each_strip(saved[0], saved[1], [=](std::int64_t row, const GateLoopStrip& strip) {
      gate_loop_backward(strip, states + row * row_size, of_out + row * row_size,
                         gradient + row * row_size * 3);
    });
    return {result};
  }
};

}  // namespace

torch::Tensor gate_loop(const torch::Tensor& qkva, GateLoopOrder order, torch::Tensor* state) {
  if (order != GateLoopOrder::one_by_one || !qkva.is_cpu()) {
    const GateLoopOrder other = order == GateLoopOrder::one_by_one ? GateLoopOrder::pairs : order;
    return loop_reference(qkva, other, state);
  }
  const torch::Tensor whole = qkva.to(torch::kFloat32);
  if (state == nullptr) return LoopFunction::apply(whole).to(qkva.scalar_type());
  TORCH_CHECK(!torch::GradMode::is_enabled(),
              "a gate loop with a state computes no gradients; call it with gradients disabled");
  const torch::Tensor dense = whole.contiguous();
  const LoopResult looped = run_loop(dense, gates_of(dense), *state);
  *state = looped.states.select(1, -1).contiguous();
  return looped.out.to(qkva.scalar_type());
}

GateLoopBlock::GateLoopBlock(std::int64_t dim, std::int64_t depth, GateLoopOrder order)
    : order_(order) {
  const auto loops = register_module("gateloops", std::make_shared<nn::Module>());
  for (std::int64_t i = 0; i < depth; ++i) {
    Layer layer{std::make_shared<RmsNorm>(dim, 0),
                nn::Linear(nn::LinearOptions(dim, dim * 3).bias(false))};
    loops->register_module(
        std::to_string(i),
        named({{"norm", layer.norm}, {"to_qkva", named({{"0", layer.to_qkva.ptr()}})}}));
    layers_.push_back(std::move(layer));
  }
}

torch::Tensor GateLoopBlock::forward(torch::Tensor x, GateLoopStates* states) {
  if (x.size(1) == 0) return x;
  if (states != nullptr) states->resize(layers_.size());
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = layers_[i];
    const torch::Tensor normed =
        order_ == GateLoopOrder::one_by_one
            ? unit_norm(x, layer.norm->parameters()[0], std::sqrt(static_cast<double>(x.size(-1))))
            : layer.norm->forward(x, {});
    const torch::Tensor qkva = order_ == GateLoopOrder::one_by_one
                                   ? linear_product(normed, layer.to_qkva->weight)
                                   : nn::Linear(layer.to_qkva)(normed);
    x = x + gate_loop(qkva, order_, states != nullptr ? &(*states)[i] : nullptr);
  }
  return x;
}

}  // namespace millrace
