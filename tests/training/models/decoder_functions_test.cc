// Compares the fused operators (attention over a few tokens, gated layers, linear layers) and their
// gradients with plain operators in 64 bits.
#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/ops/decoder_functions.h>
#include <millrace/training/models/ops/linear_function.h>

#include <cmath>
#include <functional>
#include <set>
#include <thread>
#include <vector>

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

namespace millrace {
namespace {

struct Sizes {
  std::int64_t rows, length, heads, key_heads, channels, memories;
};

using Tensors = std::vector<torch::Tensor>;
using Operation = std::function<torch::Tensor(const Tensors&)>;

// The output, and the gradient of each input for a fixed weighted sum of the output.
Tensors run(const Operation& operation, const Tensors& inputs, torch::ScalarType type) {
  Tensors leaves;
  for (const torch::Tensor& input : inputs) {
    leaves.push_back(input.detach().to(type).clone().requires_grad_());
  }
  const torch::Tensor out = operation(leaves);
  const torch::Tensor weights = torch::arange(out.numel(), out.options()).sin().view(out.sizes());
  (out * weights).sum().backward();
  Tensors found{out.detach()};
  for (const torch::Tensor& leaf : leaves) found.push_back(leaf.grad());
  return found;
}

void expect_alike(const Operation& ours, const Operation& plain, const Tensors& inputs,
                  double tolerance = 2e-6) {
  const Tensors got = run(ours, inputs, torch::kFloat32);
  const Tensors wanted = run(plain, inputs, torch::kFloat64);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    ASSERT_EQ(got[i].sizes(), wanted[i].sizes());
    const double error = (got[i] - wanted[i]).norm().item<double>();
    EXPECT_LT(error, tolerance * wanted[i].norm().item<double>() + 1e-7) << "tensor " << i;
  }
}

torch::Tensor plain_attention(const Tensors& in, const Sizes& s, double scale) {
  const Tensors parts =
      in[0].transpose(1, 2).split_with_sizes({s.heads, s.key_heads, s.key_heads}, 1);
  auto whole = [&](const torch::Tensor& seen, std::size_t memory) {
    torch::Tensor all = seen;
    if (s.memories > 0) {
      all = torch::cat({in[memory].unsqueeze(0).expand({s.rows, -1, -1, -1}), seen}, 2);
    }
    return all.repeat({1, s.heads / s.key_heads, 1, 1});
  };
  const torch::Tensor products = parts[0].matmul(whole(parts[1], 1).transpose(-2, -1)) * scale;
  const torch::Tensor later =
      torch::ones({s.length, s.memories + s.length}, torch::kBool).triu(s.memories + 1);
  const torch::Tensor weights = products.masked_fill(later, -INFINITY).softmax(-1);
  return weights.matmul(whole(parts[2], 2)).transpose(1, 2);
}

Tensors attention_inputs(const Sizes& s) {
  Tensors inputs{torch::randn({s.rows, s.length, s.heads + 2 * s.key_heads, s.channels})};
  if (s.memories == 0) return inputs;
  for (int i = 0; i < 2; ++i) inputs.push_back(torch::randn({s.key_heads, s.memories, s.channels}));
  return inputs;
}

torch::Tensor our_attention(const Tensors& in, const Sizes& s, double scale) {
  const torch::Tensor none;
  return short_attention(in[0], in.size() > 1 ? in[1] : none, in.size() > 1 ? in[2] : none, s.heads,
                         scale);
}

// Sizes that do not fill a group of rows or a SIMD vector, heads that share keys, a single token.
TEST(ShortAttention, IsPlainAttentionAndHasItsGradients) {
  torch::manual_seed(1);
  for (const Sizes& s :
       {Sizes{70, 6, 4, 4, 64, 4}, Sizes{33, 6, 2, 1, 24, 0}, Sizes{5, 8, 4, 2, 7, 3},
        Sizes{1, 1, 1, 1, 1, 0}, Sizes{2, 1, 2, 2, 5, 4}, Sizes{3, 40, 2, 2, 33, 24}}) {
    SCOPED_TRACE(testing::Message() << s.length << " tokens, " << s.channels << " channels");
    const double scale = 1 / std::sqrt(static_cast<double>(s.channels));
    expect_alike([&](const Tensors& in) { return our_attention(in, s, scale); },
                 [&](const Tensors& in) { return plain_attention(in, s, scale); },
                 attention_inputs(s));
  }
}

TEST(ShortAttention, TakesLargeProductsWithoutOverflow) {
  torch::manual_seed(2);
  const Sizes s{4, 6, 2, 2, 8, 1};
  expect_alike([&](const Tensors& in) { return our_attention(in, s, 30); },
               [&](const Tensors& in) { return plain_attention(in, s, 30); }, attention_inputs(s),
               5e-5);  // exp of products of hundreds, each rounded to 32 bits
}

void expect_same_for_any_threads(const Operation& operation, const Tensors& inputs) {
  const int before = torch::get_num_threads();
  torch::set_num_threads(1);
  const Tensors alone = run(operation, inputs, torch::kFloat32);
  torch::set_num_threads(3);
  const Tensors together = run(operation, inputs, torch::kFloat32);
  torch::set_num_threads(before);
  for (std::size_t i = 0; i < alone.size(); ++i) EXPECT_TRUE(torch::equal(alone[i], together[i]));
}

TEST(ShortAttention, IsTheSameForAnyNumberOfThreads) {
  torch::manual_seed(3);
  const Sizes s{150, 6, 4, 2, 16, 4};
  expect_same_for_any_threads([&](const Tensors& in) { return our_attention(in, s, 0.25); },
                              attention_inputs(s));
}

// at::parallel_for is a template in a header. Compiled without OpenMP it runs on one thread.
TEST(OwnKernels, RunOnAsManyThreadsAsAreAskedFor) {
  const int before = torch::get_num_threads();
  torch::set_num_threads(3);
  std::vector<std::thread::id> seen(3);
  at::parallel_for(0, 3, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      seen[static_cast<std::size_t>(i)] = std::this_thread::get_id();
    }
  });
  torch::set_num_threads(before);
  EXPECT_EQ(std::set(seen.begin(), seen.end()).size(), 3U);
}

TEST(ShortAttention, IsForFewTokensIn32BitsOnly) {
  const torch::Tensor x = torch::zeros({1});
  EXPECT_TRUE(short_enough(x, 6, 4));
  EXPECT_TRUE(short_enough(x, 60, 4));
  EXPECT_FALSE(short_enough(x, 61, 4));
  EXPECT_FALSE(short_enough(x, 0, 4));
  EXPECT_FALSE(short_enough(x.to(torch::kBFloat16), 6, 4));
  EXPECT_FALSE(short_enough(x.to(torch::kFloat64), 6, 4));
}

torch::Tensor plain_gate(const torch::Tensor& x) {
  const Tensors halves = x.chunk(2, -1);
  return halves[0] * torch::gelu(halves[1]);
}

TEST(GatedGelu, IsAProductWithGeluAndHasItsGradients) {
  torch::manual_seed(4);
  const auto ours = [](const Tensors& in) { return gated_gelu(in[0]); };
  const auto plain = [](const Tensors& in) { return plain_gate(in[0]); };
  expect_alike(ours, plain, {torch::randn({7, 30, 128}) * 3});
  expect_alike(ours, plain, {torch::randn({5, 26})});  // not a multiple of the SIMD width
  expect_alike(ours, plain, {torch::linspace(-12, 12, 2000).view({2, 1000})});
}

TEST(GatedGelu, TakesOtherTypesInPlainOperations) {
  torch::manual_seed(5);
  const torch::Tensor x = torch::randn({3, 16}).to(torch::kBFloat16);
  EXPECT_TRUE(torch::equal(gated_gelu(x), plain_gate(x)));
}

TEST(UnitNorm, BringsTokensToOneLengthAndHasItsGradients) {
  torch::manual_seed(6);
  const auto ours = [](const Tensors& in) { return unit_norm(in[0], in[1], 3.5); };
  const auto plain = [](const Tensors& in) {
    return in[0] / in[0].norm(2, -1, true) * 3.5 * in[1];
  };
  expect_alike(ours, plain, {torch::randn({3, 200, 24}), torch::randn({24})});
  expect_alike(ours, plain, {torch::randn({5, 13}) * 1e-6, torch::randn({13})});
  EXPECT_FALSE(unit_norm(torch::zeros({2, 8}), torch::ones({8}), 2).any().item<bool>());
}

torch::Tensor our_linear(const Tensors& in) {
  return in.size() > 2 ? linear_product(in[0], in[1], in[2]) : linear_product(in[0], in[1]);
}

torch::Tensor plain_linear(const Tensors& in) {
  const torch::Tensor product = in[0].matmul(in[1].t());
  return in.size() > 2 ? product + in[2] : product;
}

// Rows, columns and depths that fill tiles, SIMD vectors and blocks exactly, exceed them by one, or
// fall short by one.
TEST(LinearProduct, IsALinearLayerAndHasItsGradients) {
  torch::manual_seed(7);
  for (const std::int64_t rows : {64, 72, 95, 600}) {
    for (const auto& [in, out] : {std::pair{128, 96}, {1, 1}, {31, 33}, {257, 17}, {700, 31}}) {
      SCOPED_TRACE(testing::Message() << rows << " rows, " << in << " to " << out);
      const Tensors inputs{torch::randn({rows, in}), torch::randn({out, in}), torch::randn({out})};
      // The gradient of a bias is a sum with cancellation, hence the larger tolerance.
      expect_alike(our_linear, plain_linear, inputs, 1e-5);
      expect_alike(our_linear, plain_linear, {inputs[0], inputs[1]});
    }
  }
}

TEST(LinearProduct, TakesAnyShapeAndLayout) {
  torch::manual_seed(8);
  expect_alike([](const Tensors& in) { return linear_product(in[0].transpose(0, 1), in[1].t()); },
               [](const Tensors& in) { return in[0].transpose(0, 1).matmul(in[1]); },
               {torch::randn({9, 20, 40}), torch::randn({40, 24})});
  EXPECT_EQ(linear_product(torch::randn({0, 8}), torch::randn({4, 8})).sizes(),
            (torch::IntArrayRef{0, 4}));
  const Tensors few{torch::randn({3, 40}), torch::randn({24, 40}), torch::randn({24})};
  EXPECT_TRUE(torch::equal(our_linear(few), torch::linear(few[0], few[1], few[2])));
  EXPECT_EQ(linear_product(torch::randn({70, 8}).to(torch::kBFloat16),
                           torch::randn({4, 8}).to(torch::kBFloat16))
                .scalar_type(),
            torch::kBFloat16);
}

TEST(LinearProduct, HasNoGradientThatNobodyAsksFor) {
  const torch::Tensor x = torch::randn({80, 16}),
                      weight = torch::randn({8, 16}, torch::requires_grad());
  linear_product(x, weight).sum().backward();
  EXPECT_FALSE(x.grad().defined());
  EXPECT_TRUE(torch::allclose(weight.grad(), x.sum(0).expand({8, 16}), 1e-4, 1e-4));
  EXPECT_FALSE(linear_product(x, weight.detach()).requires_grad());
}

TEST(LinearProduct, IsTheSameForAnyNumberOfThreadsAndAnyOtherRows) {
  torch::manual_seed(9);
  const Tensors inputs{torch::randn({500, 300}), torch::randn({70, 300}), torch::randn({70})};
  expect_same_for_any_threads(our_linear, inputs);
  const torch::Tensor all = our_linear(inputs);
  EXPECT_TRUE(torch::equal(our_linear({inputs[0].slice(0, 101, 201), inputs[1], inputs[2]}),
                           all.slice(0, 101, 201)));
}

}  // namespace
}  // namespace millrace
