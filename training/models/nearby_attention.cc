#include "nearby_attention.h"

#include <limits>

#include <ATen/Parallel.h>
#include <torch/torch.h>

namespace millrace {

namespace {

constexpr float masked = std::numeric_limits<float>::lowest();

struct Sizes {
  std::int64_t batch, tokens, heads, channels, places, seen;

  Sizes(const torch::Tensor& by_token, const torch::Tensor& y, const torch::Tensor& table)
      : batch(y.size(0)),
        tokens(by_token.size(1)),
        heads(y.size(2)),
        channels(y.size(3)),
        places(y.size(1)),
        seen(table.size(1)) {}
};

float dot(const float* a, const float* b, std::int64_t count) {
  constexpr std::int64_t lanes = 8;  // sums that the compiler can take side by side
  float sums[lanes] = {};
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    for (std::int64_t lane = 0; lane < lanes; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  }
  float sum = 0;
  for (; i < count; ++i) sum += a[i] * b[i];
  for (float lane : sums) sum += lane;
  return sum;
}

// body(batch, head) on all threads: each writes to its own head of its own row.
template <class Body>
void for_heads(const Sizes& s, const Body& body) {
  at::parallel_for(0, s.batch * s.heads, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) body(i / s.heads, i % s.heads);
  });
}

// Note [three products]: of tokens x, of what they see y and of weights w, each is a sum over the
// other two: w = x . y, x = sum of w y, y = sum of w x. The gradients of the first are the second
// and the third, those of the second are the first and the third.
torch::Tensor products(const torch::Tensor& x, const torch::Tensor& y, const torch::Tensor& table,
                       float where_none) {
  const Sizes s(x, y, table);
  torch::Tensor w = torch::empty({s.batch, s.tokens, s.heads, s.seen}, x.options());
  const auto *px = x.const_data_ptr<float>(), *py = y.const_data_ptr<float>();
  const auto* place = table.const_data_ptr<std::int64_t>();
  auto* pw = w.mutable_data_ptr<float>();
  for_heads(s, [&](std::int64_t b, std::int64_t h) {
    for (std::int64_t i = 0; i < s.tokens; ++i) {
      const std::int64_t at = (b * s.tokens + i) * s.heads + h;
      for (std::int64_t j = 0; j < s.seen; ++j) {
        const std::int64_t there = place[i * s.seen + j];
        pw[at * s.seen + j] =
            there < 0 ? where_none
                      : dot(px + at * s.channels,
                            py + ((b * s.places + there) * s.heads + h) * s.channels, s.channels);
      }
    }
  });
  return w;
}

torch::Tensor sums_by_token(const torch::Tensor& w, const torch::Tensor& y,
                            const torch::Tensor& table) {
  const Sizes s(w, y, table);
  torch::Tensor x = torch::zeros({s.batch, s.tokens, s.heads, s.channels}, y.options());
  const auto *pw = w.const_data_ptr<float>(), *py = y.const_data_ptr<float>();
  const auto* place = table.const_data_ptr<std::int64_t>();
  auto* px = x.mutable_data_ptr<float>();
  for_heads(s, [&](std::int64_t b, std::int64_t h) {
    for (std::int64_t i = 0; i < s.tokens; ++i) {
      const std::int64_t at = (b * s.tokens + i) * s.heads + h;
      float* to = px + at * s.channels;
      for (std::int64_t j = 0; j < s.seen; ++j) {
        const std::int64_t there = place[i * s.seen + j];
        if (there < 0) continue;
        const float weight = pw[at * s.seen + j];
        const float* from = py + ((b * s.places + there) * s.heads + h) * s.channels;
        for (std::int64_t c = 0; c < s.channels; ++c) to[c] += weight * from[c];
      }
    }
  });
  return x;
}

torch::Tensor sums_by_place(const torch::Tensor& w, const torch::Tensor& x, const torch::Tensor& y,
                            const torch::Tensor& table) {
  const Sizes s(w, y, table);
  torch::Tensor sums = torch::zeros(y.sizes(), y.options());
  const auto *pw = w.const_data_ptr<float>(), *px = x.const_data_ptr<float>();
  const auto* place = table.const_data_ptr<std::int64_t>();
  auto* to_all = sums.mutable_data_ptr<float>();
  for_heads(s, [&](std::int64_t b, std::int64_t h) {
    for (std::int64_t i = 0; i < s.tokens; ++i) {
      const std::int64_t at = (b * s.tokens + i) * s.heads + h;
      const float* from = px + at * s.channels;
      for (std::int64_t j = 0; j < s.seen; ++j) {
        const std::int64_t there = place[i * s.seen + j];
        if (there < 0) continue;
        const float weight = pw[at * s.seen + j];
        float* to = to_all + ((b * s.places + there) * s.heads + h) * s.channels;
        for (std::int64_t c = 0; c < s.channels; ++c) to[c] += weight * from[c];
      }
    }
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
