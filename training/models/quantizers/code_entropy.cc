// Note [factored entropies]
//
// The codes of a lookup-free quantizer are the corners of a cube, so the softmax over all codes is
// a product of one factor per bit. With the bits in two halves, p(high, low) = a(high) b(low): for
// 2^14 codes each vector needs two rows of 2^7 numbers instead of one row of 2^14, and the mean
// over all vectors is a matrix product. Only the clamp of the logarithm needs every p. It is
// computed for a few vectors at a time, in a buffer that stays in the cache. The gradient needs
// only the row and column sums.
#include "code_entropy.h"

#include <millrace/training/device/torch_api.h>

#include <algorithm>
#include <cmath>

namespace millrace {

namespace {

constexpr double least = 1e-5;  // lower bound of p inside the logarithm

// The distribution over the codes of one half of the bits.
struct Half {
  torch::Tensor signs;  // [codes, bits], +-1; the first bit is the most significant
  torch::Tensor log;    // [count, codes]
  torch::Tensor p;

  Half(const torch::Tensor& vectors, double factor) {
    const std::int64_t bits = vectors.size(1);
    const torch::Tensor numbers =
        torch::arange(std::int64_t{1} << bits, vectors.options().dtype(torch::kInt64));
    const torch::Tensor values = torch::pow(2, torch::arange(bits - 1, -1, -1, numbers.options()));
    signs = (numbers.unsqueeze(1).bitwise_and(values) != 0).to(vectors.scalar_type()) * 2 - 1;
    log = (vectors.matmul(signs.t()) * factor).log_softmax(1);
    p = log.exp();
  }
};

struct Halves {
  Half high, low;
  std::int64_t count;

  Halves(const torch::Tensor& vectors, double factor)
      : high(vectors.narrow(1, 0, vectors.size(1) / 2), factor),
        low(vectors.narrow(1, vectors.size(1) / 2, vectors.size(1) - vectors.size(1) / 2), factor),
        count(vectors.size(0)) {}

  torch::Tensor mean() const {  // over all vectors, [high codes, low codes]
    return high.p.t().matmul(low.p) / static_cast<double>(std::max<std::int64_t>(count, 1));
  }

  // Calls visit(begin, p, clamped log p) for a few vectors at a time. visit() may overwrite both
  // tensors.
  template <class Visit>
  void for_each_chunk(const Visit& visit) const {
    const std::int64_t codes = high.p.size(1) * low.p.size(1);
    const std::int64_t budget = std::int64_t{1} << (high.p.is_cuda() ? 25 : 17);
    const std::int64_t rows = std::max<std::int64_t>(budget / codes, 1);
    torch::Tensor p, logarithm;
    for (std::int64_t begin = 0; begin < count; begin += rows) {
      const std::int64_t n = std::min(rows, count - begin);
      const auto part = [&](const torch::Tensor& t) { return t.narrow(0, begin, n); };
      if (!p.defined() || p.size(0) != n) {
        p = torch::empty({n, high.p.size(1), low.p.size(1)}, high.p.options());
        logarithm = torch::empty_like(p);
      }
      at::mul_out(p, part(high.p).unsqueeze(2), part(low.p).unsqueeze(1));
      at::add_out(logarithm, part(high.log).unsqueeze(2), part(low.log).unsqueeze(1));
      logarithm.clamp_min_(std::log(least));
      visit(begin, p, logarithm);
    }
  }
};

torch::Tensor clamped_log(const torch::Tensor& p) {
  return p.clamp_min(least).log();
}

// The derivative of -p log(clamped p). Overwrites `logarithm`, the clamped log p.
torch::Tensor slope(const torch::Tensor& p, torch::Tensor& logarithm) {
  return logarithm.add_(p.ge(least)).neg_();
}

// The gradient of one half's bits, from the sums of p * slope over the other half.
torch::Tensor gradient_of_bits(const Half& half, const torch::Tensor& sums,
                               const torch::Tensor& total) {
  return (sums - half.p * total).matmul(half.signs);
}

class Entropies : public torch::autograd::Function<Entropies> {
 public:
  static torch::autograd::variable_list forward(torch::autograd::AutogradContext* context,
                                                const torch::Tensor& vectors, double factor) {
    const Halves halves(vectors, factor);
    torch::Tensor sum = torch::zeros({}, vectors.options().dtype(torch::kFloat64));
    halves.for_each_chunk([&](std::int64_t, const torch::Tensor& p, const torch::Tensor& log) {
      sum.sub_(torch::dot(p.flatten(), log.flatten()));
    });
    const torch::Tensor mean = halves.mean();
    context->save_for_backward({vectors});
    context->saved_data["factor"] = factor;
    return {(sum / static_cast<double>(halves.count)).to(vectors.scalar_type()),
            -(mean * clamped_log(mean)).sum()};
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const torch::Tensor vectors = context->get_saved_variables()[0];
    const double factor = context->saved_data["factor"].toDouble();
    const Halves halves(vectors, factor);
    torch::Tensor rows = torch::empty_like(halves.high.p),
                  columns = torch::empty_like(halves.low.p);
    halves.for_each_chunk([&](std::int64_t begin, const torch::Tensor& p, torch::Tensor& log) {
      const torch::Tensor weighted = slope(p, log).mul_(p);
      torch::Tensor row = rows.narrow(0, begin, p.size(0));
      torch::Tensor column = columns.narrow(0, begin, p.size(0));
      at::sum_out(row, weighted, 2);
      at::sum_out(column, weighted, 1);
    });
    rows.mul_(gradients[0]);
    columns.mul_(gradients[0]);
    const torch::Tensor mean = halves.mean();
    torch::Tensor logarithm = clamped_log(mean);
    const torch::Tensor shared = slope(mean, logarithm) * gradients[1];
    rows.add_(halves.high.p * halves.low.p.matmul(shared.t()));
    columns.add_(halves.low.p * halves.high.p.matmul(shared));
    const torch::Tensor total = rows.sum(1, true);
    const torch::Tensor all = torch::cat(
        {gradient_of_bits(halves.high, rows, total), gradient_of_bits(halves.low, columns, total)},
        1);
    return {all * (factor / static_cast<double>(halves.count)), torch::Tensor()};
  }
};

}  // namespace

CodeEntropies code_entropies(const torch::Tensor& vectors, double scale,
                             double inverse_temperature) {
  const auto both = Entropies::apply(vectors, 2 * inverse_temperature * scale);
  return {.per_sample = both[0], .batch = both[1]};
}

}  // namespace millrace
