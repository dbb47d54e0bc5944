#include <millrace/pipeline/base/error.h>
#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/quantizers/fsq.h>

#include <algorithm>

#include <c10/util/StringUtil.h>

namespace millrace {

FsqImpl::FsqImpl(FsqOptions options) : options_(std::move(options)) {
  FsqOptions& o = options_;
  const bool levels_fit =
      !o.levels.empty() && std::ranges::all_of(o.levels, [](std::int64_t n) { return n >= 2; });
  if (!levels_fit || o.num_codebooks < 1) {
    throw Error("levels of the finite scalar quantizer must be a list of numbers, each at least 2")
        .kind(ErrorKind::usage);
  }
  std::int64_t size = 1;
  std::vector<std::int64_t> basis;
  for (std::int64_t level : o.levels) {
    basis.push_back(size);
    size *= level;
    if (size > (std::int64_t{1} << 24)) {  // indices are computed in float32
      throw Error(
          "the product of the levels of the finite scalar quantizer must be at most 16777216")
          .kind(ErrorKind::usage);
    }
  }
  levels_ = torch::tensor(o.levels).to(torch::kInt32);
  basis_ = torch::tensor(basis).to(torch::kInt32);
  const std::int64_t codes = static_cast<std::int64_t>(o.levels.size()) * o.num_codebooks;
  if (o.dim == 0) o.dim = codes;
  if (o.dim != codes) {
    project_in_ = register_module("project_in", torch::nn::Linear(o.dim, codes));
    project_out_ = register_module("project_out", torch::nn::Linear(codes, o.dim));
  }
}

namespace {

torch::Tensor bound(const torch::Tensor& z, const torch::Tensor& levels) {
  const torch::Tensor half = (levels - 1) * (1 + 1e-3) / 2;
  const torch::Tensor offset = torch::where(levels % 2 == 0, 0.5, 0.0).to(half.dtype());
  const torch::Tensor shift = (offset / half).atanh();
  return (z + shift).tanh() * half - offset;
}

}  // namespace

Quantized FsqImpl::forward(const torch::Tensor& features) {
  const torch::Tensor levels = levels_.to(features.device()), basis = basis_.to(features.device());
  torch::Tensor z = features.to(torch::kFloat32);
  const bool transpose = z.dim() >= 4;
  std::vector<std::int64_t> outer;  // the shape without the channels
  if (transpose) {
    z = z.movedim(1, -1);
    outer = z.sizes().slice(0, static_cast<std::size_t>(z.dim()) - 1).vec();
    z = z.reshape({z.size(0), -1, z.size(-1)}).contiguous();
  }
  if (z.size(-1) != options_.dim) {
    throw Error(c10::str("the quantizer expects ", options_.dim, " channels, but got ", z.size(-1)))
        .kind(ErrorKind::usage);
  }
  if (project_in_) z = project(project_in_, z);
  z = z.reshape({z.size(0), z.size(1), options_.num_codebooks, levels.size(0)});

  // Straight-through estimator: the rounded value, with the gradient of the input.
  const torch::Tensor bounded = bound(z, levels);
  const torch::Tensor half_width = levels.floor_divide(2);
  torch::Tensor codes = (bounded + (bounded.round() - bounded).detach()) / half_width;
  Quantized result;
  // In float32 and truncated at the end, for bit-exact indices.
  result.indices = ((codes.detach() * half_width + half_width) * basis)
                       .sum(-1)
                       .to(torch::kInt32)
                       .to(torch::kInt64);
  result.loss = torch::zeros({}, z.options());
  codes = codes.flatten(2);
  if (project_out_) codes = project(project_out_, codes);
  if (transpose) {
    std::vector<std::int64_t> shape = outer;
    shape.push_back(codes.size(-1));
    codes = codes.reshape(shape).movedim(-1, 1);
    shape.back() = options_.num_codebooks;
    result.indices = result.indices.reshape(shape);
  }
  if (options_.num_codebooks == 1) result.indices = result.indices.squeeze(-1);
  result.features = codes;
  return result;
}

torch::Tensor FsqImpl::decode(const torch::Tensor& indices) {
  const torch::Tensor levels = levels_.to(indices.device()), basis = basis_.to(indices.device());
  const torch::Tensor half_width = levels.floor_divide(2);
  const torch::Tensor steps = indices.unsqueeze(-1).floor_divide(basis).remainder(levels);
  torch::Tensor codes = (steps - half_width) / half_width;
  const bool several = options_.num_codebooks > 1;
  if (several) codes = codes.flatten(-2);
  if (project_out_) codes = project(project_out_, codes);
  return indices.dim() >= (several ? 4 : 3) ? codes.movedim(-1, 1) : codes;
}

}  // namespace millrace
