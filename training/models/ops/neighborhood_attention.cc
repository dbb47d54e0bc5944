#include "neighborhood_attention.h"

#include "neighborhood_kernels.h"

#include <millrace/training/device/torch_api.h>

#include <algorithm>
#include <limits>

#include <ATen/Parallel.h>

namespace millrace {

namespace {

constexpr float masked = std::numeric_limits<float>::lowest();

// Calls body(sizes, token offset, position offset, weight offset) for every head of every row, in
// parallel. Calls write to disjoint memory.
template <class Body>
void for_heads(const torch::Tensor& by_token, const torch::Tensor& y, const torch::Tensor& table,
               const Body& body) {
  const std::int64_t batch = y.size(0), heads = y.size(2), channels = y.size(3);
  const NearbySizes sizes{.tokens = by_token.size(1),
                          .seen = table.size(1),
                          .channels = channels,
                          .stride = heads * channels,
                          .weights_stride = heads * table.size(1),
                          .table = table.const_data_ptr<std::int64_t>()};
  const std::int64_t places = y.size(1);
  // Work of less than about 10 us is not worth another thread.
  constexpr std::int64_t least = 1 << 15;
  const std::int64_t work = std::max<std::int64_t>(sizes.tokens * sizes.seen * channels, 1);
  at::parallel_for(0, batch * heads, std::max<std::int64_t>(least / work, 1),
                   [&](std::int64_t begin, std::int64_t end) {
                     for (std::int64_t i = begin; i < end; ++i) {
                       const std::int64_t row = i / heads, head = i % heads;
                       body(sizes, row * sizes.tokens * sizes.stride + head * channels,
                            row * places * sizes.stride + head * channels,
                            row * sizes.tokens * sizes.weights_stride + head * sizes.seen);
                     }
                   });
}

// Note [three products]: tokens x, positions y and weights w are related by three sums: w = x . y,
// x = sum of w y, y = sum of w x. The gradients of the first are the second and the third; the
// gradients of the second are the first and the third.
torch::Tensor products(const torch::Tensor& x, const torch::Tensor& y, const torch::Tensor& table,
                       float fill) {
  torch::Tensor w = torch::empty({x.size(0), x.size(1), x.size(2), table.size(1)}, x.options());
  for_heads(x, y, table, [&](const NearbySizes& s, auto token, auto place, auto weight) {
    nearby_products(s, x.const_data_ptr<float>() + token, y.const_data_ptr<float>() + place, fill,
                    w.mutable_data_ptr<float>() + weight);
  });
  return w;
}

torch::Tensor sums_by_token(const torch::Tensor& w, const torch::Tensor& y,
                            const torch::Tensor& table) {
  torch::Tensor x = torch::zeros({w.size(0), w.size(1), w.size(2), y.size(3)}, y.options());
  for_heads(w, y, table, [&](const NearbySizes& s, auto token, auto place, auto weight) {
    nearby_sums_by_token(s, w.const_data_ptr<float>() + weight, y.const_data_ptr<float>() + place,
                         x.mutable_data_ptr<float>() + token);
  });
  return x;
}

torch::Tensor sums_by_place(const torch::Tensor& w, const torch::Tensor& x, const torch::Tensor& y,
                            const torch::Tensor& table) {
  torch::Tensor sums = torch::zeros(y.sizes(), y.options());
  for_heads(w, y, table, [&](const NearbySizes& s, auto token, auto place, auto weight) {
    nearby_sums_by_place(s, w.const_data_ptr<float>() + weight, x.const_data_ptr<float>() + token,
                         sums.mutable_data_ptr<float>() + place);
  });
  return sums;
}

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// See Note [three products].
struct NearbyLogits : torch::autograd::Function<NearbyLogits> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x,
                               const torch::Tensor& y, const torch::Tensor& table) {
    const torch::Tensor dense_x = x.contiguous(), dense_y = y.contiguous();
    context->save_for_backward({dense_x, dense_y, table});
    return products(dense_x, dense_y, table, masked);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const torch::Tensor w = gradients[0].contiguous();
    return {sums_by_token(w, saved[1], saved[2]), sums_by_place(w, saved[0], saved[1], saved[2]),
            torch::Tensor()};
  }
};

struct NearbySum : torch::autograd::Function<NearbySum> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& w,
                               const torch::Tensor& y, const torch::Tensor& table) {
    const torch::Tensor dense_w = w.contiguous(), dense_y = y.contiguous();
    context->save_for_backward({dense_w, dense_y, table});
    return sums_by_token(dense_w, dense_y, table);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const torch::Tensor x = gradients[0].contiguous();
    return {products(x, saved[1], saved[2], 0), sums_by_place(saved[0], x, saved[1], saved[2]),
            torch::Tensor()};
  }
};

bool on_cpu(const torch::Tensor& a, const torch::Tensor& b) {
  return a.is_cpu() && a.scalar_type() == torch::kFloat32 && b.scalar_type() == torch::kFloat32;
}

// [batch, tokens, seen, heads, channels]
torch::Tensor gathered(const torch::Tensor& y, const torch::Tensor& table) {
  return y.index_select(1, table.clamp_min(0).flatten()).unflatten(1, table.sizes());
}

}  // namespace

torch::Tensor causal_neighbours(const std::array<std::int64_t, 3>& video,
                                const std::array<std::int64_t, 3>& kernel,
                                const std::array<std::int64_t, 3>& dilation) {
  const std::int64_t seen = 1 + kernel[0] * kernel[1] * kernel[2];
  torch::Tensor table = torch::empty({video[0] * video[1] * video[2], seen}, torch::kInt64);
  auto* to = table.mutable_data_ptr<std::int64_t>();
  auto back = [&](std::size_t axis, std::int64_t at, std::int64_t step) {
    return at - dilation[axis] * (kernel[axis] - 1 - step);
  };
  for (std::int64_t t = 0; t < video[0]; ++t) {
    for (std::int64_t y = 0; y < video[1]; ++y) {
      for (std::int64_t x = 0; x < video[2]; ++x) {
        *to++ = 0;
        for (std::int64_t i = 0; i < seen - 1; ++i) {
          const std::int64_t st = back(0, t, i / (kernel[1] * kernel[2]));
          const std::int64_t sy = back(1, y, i / kernel[2] % kernel[1]);
          const std::int64_t sx = back(2, x, i % kernel[2]);
          const bool inside = st >= 0 && sy >= 0 && sx >= 0;
          *to++ = inside ? 1 + (st * video[1] + sy) * video[2] + sx : -1;
        }
      }
    }
  }
  return table;
}

torch::Tensor gathered_logits(const torch::Tensor& x, const torch::Tensor& y,
                              const torch::Tensor& table) {
  const torch::Tensor logits =
      torch::einsum("bihc,bijhc->bihj", {x, gathered(y, table)}).to(torch::kFloat32);
  const torch::Tensor none = (table < 0).unsqueeze(1).unsqueeze(0);
  return logits.masked_fill(none, masked);
}

torch::Tensor gathered_sum(const torch::Tensor& weights, const torch::Tensor& y,
                           const torch::Tensor& table) {
  return torch::einsum("bihj,bijhc->bihc", {weights.to(y.scalar_type()), gathered(y, table)});
}

torch::Tensor nearby_logits(const torch::Tensor& x, const torch::Tensor& y,
                            const torch::Tensor& table) {
  return on_cpu(x, y) ? NearbyLogits::apply(x, y, table) : gathered_logits(x, y, table);
}

torch::Tensor nearby_sum(const torch::Tensor& weights, const torch::Tensor& y,
                         const torch::Tensor& table) {
  return on_cpu(weights, y) ? NearbySum::apply(weights, y, table) : gathered_sum(weights, y, table);
}

}  // namespace millrace
