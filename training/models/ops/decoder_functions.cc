#include "decoder_functions.h"

#include "decoder_kernels.h"

#include <millrace/training/device/torch_api.h>

#include <algorithm>

#include <ATen/Parallel.h>

namespace millrace {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Rows whose gradients of learned keys and values are summed together. The group size is fixed, so
// that the result does not depend on the number of threads.
constexpr std::int64_t rows_at_once = 32;
constexpr std::int64_t tokens_at_once = 256;  // the same for the factors of a norm

ShortAttentionSizes sizes_of(const torch::Tensor& qkv, const torch::Tensor& memories,
                             std::int64_t heads, double scale) {
  return {.length = qkv.size(1),
          .memories = memories.size(1),
          .heads = heads,
          .key_heads = (qkv.size(2) - heads) / 2,
          .channels = qkv.size(3),
          .scale = static_cast<float>(scale)};
}

const float* data_of(const torch::Tensor& tensor) {
  return tensor.const_data_ptr<float>();
}

float* to_data(torch::Tensor& tensor, std::int64_t at) {
  return tensor.defined() ? tensor.mutable_data_ptr<float>() + at : nullptr;
}

// The inputs of an attention, with access to each row.
struct Rows {
  torch::Tensor qkv, memory_keys, memory_values, weights;
  ShortAttentionSizes sizes;

  ShortAttentionRow row(std::int64_t i) const {
    return {.qkv = data_of(qkv) + i * sizes.length * sizes.stride(),
            .memory_keys = data_of(memory_keys),
            .memory_values = data_of(memory_values),
            .weights =
                weights.mutable_data_ptr<float>() + i * sizes.heads * sizes.length * sizes.keys()};
  }
  std::int64_t out(std::int64_t i) const { return i * sizes.length * sizes.heads * sizes.channels; }
};

// Gradients of qkv and of the learned keys and values.
variable_list gradients_of(const Rows& all, const torch::Tensor& of_out) {
  const std::int64_t rows = all.qkv.size(0), groups = (rows + rows_at_once - 1) / rows_at_once;
  const ShortAttentionSizes& s = all.sizes;
  torch::Tensor of_qkv = torch::empty_like(all.qkv), of_keys, of_values;
  if (s.memories > 0) {
    of_keys = torch::zeros({groups, s.key_heads, s.memories, s.channels}, all.qkv.options());
    of_values = torch::zeros_like(of_keys);
  }
  const std::int64_t learned = s.key_heads * s.memories * s.channels;
  at::parallel_for(0, groups, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin * rows_at_once; i < std::min(end * rows_at_once, rows); ++i) {
      const std::int64_t group = i / rows_at_once * learned;
      short_attention_backward(s, all.row(i),
                               {.of_out = data_of(of_out) + all.out(i),
                                .qkv = to_data(of_qkv, i * s.length * s.stride()),
                                .memory_keys = to_data(of_keys, group),
                                .memory_values = to_data(of_values, group)});
    }
  });
  if (s.memories == 0) return {of_qkv, torch::Tensor(), torch::Tensor()};
  return {of_qkv, of_keys.sum(0), of_values.sum(0)};
}

struct ShortAttention : torch::autograd::Function<ShortAttention> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& qkv,
                               const torch::Tensor& memory_keys, const torch::Tensor& memory_values,
                               std::int64_t heads, double scale) {
    const ShortAttentionSizes s = sizes_of(qkv, memory_keys, heads, scale);
    const Rows all{.qkv = qkv.contiguous(),
                   .memory_keys = memory_keys.contiguous(),
                   .memory_values = memory_values.contiguous(),
                   .weights = torch::empty({qkv.size(0), heads, s.length, s.keys()}, qkv.options()),
                   .sizes = s};
    torch::Tensor out = torch::empty({qkv.size(0), s.length, heads, s.channels}, qkv.options());
    at::parallel_for(0, qkv.size(0), rows_at_once, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        short_attention_forward(s, all.row(i), to_data(out, all.out(i)));
      }
    });
    context->save_for_backward({all.qkv, all.memory_keys, all.memory_values, all.weights});
    context->saved_data["heads"] = heads;
    context->saved_data["scale"] = scale;
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const Rows all{saved[0], saved[1], saved[2], saved[3],
                   sizes_of(saved[0], saved[1], context->saved_data["heads"].toInt(),
                            context->saved_data["scale"].toDouble())};
    variable_list found = gradients_of(all, gradients[0].contiguous());
    found.resize(5);
    return found;
  }
};

// Calls body(row) for every row of [rows, channels], in parallel.
template <class Body>
void for_rows(std::int64_t rows, std::int64_t channels, const Body& body) {
  const std::int64_t least =
      std::max<std::int64_t>((1 << 14) / std::max<std::int64_t>(channels, 1), 1);
  at::parallel_for(0, rows, least, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) body(i);
  });
}

struct GatedGelu : torch::autograd::Function<GatedGelu> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x) {
    const torch::Tensor in = x.contiguous();
    const std::int64_t channels = in.size(-1) / 2;
    std::vector<std::int64_t> shape = in.sizes().vec();
    shape.back() = channels;
    torch::Tensor out = torch::empty(shape, in.options());
    for_rows(in.numel() / std::max<std::int64_t>(2 * channels, 1), channels, [&](std::int64_t i) {
      const float* row = data_of(in) + i * 2 * channels;
      gated_gelu_forward(row, row + channels, channels, to_data(out, i * channels));
    });
    context->save_for_backward({in});
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const torch::Tensor in = context->get_saved_variables()[0], given = gradients[0].contiguous();
    const std::int64_t channels = given.size(-1);
    torch::Tensor gradient = torch::empty_like(in);
    for_rows(given.numel() / std::max<std::int64_t>(channels, 1), channels, [&](std::int64_t i) {
      const float* row = data_of(in) + i * 2 * channels;
      float* to = to_data(gradient, i * 2 * channels);
      gated_gelu_backward(row, row + channels, data_of(given) + i * channels, channels, to,
                          to + channels);
    });
    return {gradient};
  }
};

struct UnitNorm : torch::autograd::Function<UnitNorm> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x,
                               const torch::Tensor& factor, double scale) {
    const torch::Tensor in = x.contiguous(), factors = factor.contiguous();
    const std::int64_t channels = in.size(-1);
    torch::Tensor out = torch::empty_like(in);
    for_rows(in.numel() / channels, channels, [&](std::int64_t i) {
      unit_norm_forward(data_of(in) + i * channels, data_of(factors), static_cast<float>(scale),
                        channels, to_data(out, i * channels));
    });
    context->save_for_backward({in, factors});
    context->saved_data["scale"] = scale;
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const torch::Tensor given = gradients[0].contiguous();
    const auto scale = static_cast<float>(context->saved_data["scale"].toDouble());
    const std::int64_t channels = given.size(-1), rows = given.numel() / channels;
    const std::int64_t groups = (rows + tokens_at_once - 1) / tokens_at_once;
    torch::Tensor of_x = torch::empty_like(given);
    torch::Tensor of_factor = torch::zeros({groups, channels}, given.options());
    at::parallel_for(0, groups, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin * tokens_at_once; i < std::min(end * tokens_at_once, rows); ++i) {
        unit_norm_backward(data_of(saved[0]) + i * channels, data_of(saved[1]),
                           data_of(given) + i * channels, scale, channels,
                           to_data(of_x, i * channels),
                           to_data(of_factor, i / tokens_at_once * channels));
      }
    });
    return {of_x, of_factor.sum(0), torch::Tensor()};
  }
};

bool is_cpu_float32(const torch::Tensor& x) {
  return x.is_cpu() && x.scalar_type() == torch::kFloat32;
}

}  // namespace

bool short_enough(const torch::Tensor& x, std::int64_t length, std::int64_t memories) {
  return is_cpu_float32(x) && length > 0 && length + memories <= short_attention_keys;
}

torch::Tensor short_attention(const torch::Tensor& qkv, const torch::Tensor& memory_keys,
                              const torch::Tensor& memory_values, std::int64_t heads,
                              double scale) {
  // An autograd function cannot take undefined tensors: no learned keys are passed as 0 keys.
  const torch::Tensor none =
      torch::empty({(qkv.size(2) - heads) / 2, 0, qkv.size(3)}, qkv.options());
  return ShortAttention::apply(qkv, memory_keys.defined() ? memory_keys : none,
                               memory_values.defined() ? memory_values : none, heads, scale);
}

torch::Tensor unit_norm(const torch::Tensor& x, const torch::Tensor& factor, double scale) {
  if (is_cpu_float32(x) && is_cpu_float32(factor) && x.numel() > 0) {
    return UnitNorm::apply(x, factor, scale);
  }
  const auto over = torch::nn::functional::NormalizeFuncOptions().dim(-1);
  return torch::nn::functional::normalize(x, over) * scale * factor;
}

torch::Tensor gated_gelu(const torch::Tensor& x) {
  if (is_cpu_float32(x)) return GatedGelu::apply(x);
  const std::vector<torch::Tensor> halves = x.chunk(2, -1);
  return halves[0] * torch::gelu(halves[1]);
}

}  // namespace millrace
