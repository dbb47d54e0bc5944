#include "mesh_decoder.h"

#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/module/module_tensors.h>
#include <millrace/training/models/quantizers/quantizer.h>

#include <algorithm>
#include <cmath>

namespace millrace {

namespace nn = torch::nn;

namespace {

torch::Tensor only(const torch::Tensor& x, const PackedMeshes& packed) {
  return packed.defined() ? x * packed.is_face : x;
}

std::int64_t squeezed(std::int64_t dim) {
  return std::max<std::int64_t>(dim / 4, 16);
}

}  // namespace

PackedMeshes PackedMeshes::of(const torch::Tensor& mask, std::int64_t gap) {
  if (mask.all().item<bool>()) return {};
  const torch::Tensor mesh = mask.nonzero().select(1, 0);  // the mesh of each face
  const torch::Tensor places = torch::arange(mesh.size(0), mesh.options()) + mesh * gap;
  const std::int64_t rows = mesh.size(0) + (mask.size(0) - 1) * gap;
  const auto numbers = mask.options().dtype(torch::kFloat32);
  return {
      .is_face = torch::zeros({rows}, mask.options()).index_fill(0, places, true).view({1, 1, -1}),
      .members = torch::zeros({rows, mask.size(0)}, numbers)
                     .index_put({places, mesh}, torch::ones({1}, numbers)),
      .places = places};
}

FaceResnetBlockImpl::FaceResnetBlockImpl(std::int64_t in, std::int64_t out, double dropout)
    : dropout_(dropout),
      first_(nn::Conv1dOptions(in, out, 3).padding(1)),
      second_(nn::Conv1dOptions(out, out, 3).padding(1)),
      squeeze_(out, squeezed(out)),
      excite_(squeezed(out), out) {
  register_module("block1", named({{"proj", first_.ptr()}}));
  register_module("block2", named({{"proj", second_.ptr()}}));
  register_module("excite", named({{"net", named({{"0", squeeze_.ptr()}, {"2", excite_.ptr()}})}}));
  if (in != out) {
    residual_ = register_module("residual_conv", nn::Conv1d(nn::Conv1dOptions(in, out, 1)));
  }
}

// The caller has already set the rows between meshes to 0.
torch::Tensor FaceResnetBlockImpl::block(nn::Conv1d& conv, const torch::Tensor& x,
                                         const PackedMeshes& packed) {
  const torch::Tensor y = conv->forward(x);
  const torch::Tensor length = y.norm(2, 1, true).clamp_min(1e-4);
  torch::Tensor scale = std::sqrt(static_cast<double>(y.size(1))) / length;
  // Sets the rows between meshes to 0; the operations below keep them 0.
  const torch::Tensor z = torch::silu(y * only(scale, packed));
  return dropout_ > 0 ? torch::dropout(z, dropout_, is_training()) : z;
}

// The gate of each channel: per mesh, or per row of packed meshes.
torch::Tensor FaceResnetBlockImpl::excite(const torch::Tensor& x, const PackedMeshes& packed) {
  torch::Tensor mean;  // [meshes, channels]
  if (packed.defined()) {
    const torch::Tensor members = packed.members.to(x.scalar_type());
    mean = members.t().matmul(x[0].t()) / members.sum(0).clamp_min(1e-5).unsqueeze(-1);
  } else {
    mean = x.mean(2);
  }
  const torch::Tensor each = factors(mean);
  if (!packed.defined()) return each.unsqueeze(-1);
  return packed.members.to(each.scalar_type()).matmul(each).t().unsqueeze(0);
}

torch::Tensor FaceResnetBlockImpl::factors(const torch::Tensor& mean) {
  return project(excite_, torch::silu(project(squeeze_, mean))).sigmoid();
}

torch::Tensor FaceResnetBlockImpl::forward(const torch::Tensor& x, const PackedMeshes& packed) {
  torch::Tensor y = block(first_, only(x, packed), packed);
  y = block(second_, y, packed);
  const torch::Tensor residual = residual_ ? residual_->forward(x) : x;
  return torch::addcmul(residual, y, excite(y, packed));
}

torch::Tensor FaceResnetBlockImpl::block_reference(nn::Conv1d& conv, const torch::Tensor& x,
                                                   const torch::Tensor& absent) {
  const torch::Tensor y = conv->forward(x.masked_fill(absent, 0)).masked_fill(absent, 0);
  const auto of_channels = nn::functional::NormalizeFuncOptions().dim(1).eps(1e-4);
  const torch::Tensor normed =
      nn::functional::normalize(y, of_channels) * std::sqrt(static_cast<double>(y.size(1)));
  return torch::dropout(torch::silu(normed), dropout_, is_training());
}

torch::Tensor FaceResnetBlockImpl::forward_reference(const torch::Tensor& x,
                                                     const torch::Tensor& mask) {
  const torch::Tensor absent = mask.logical_not();
  const torch::Tensor residual = residual_ ? residual_->forward(x) : x;
  torch::Tensor y = block_reference(first_, x, absent);
  y = block_reference(second_, y, absent).masked_fill(absent, 0);
  const torch::Tensor mean = y.sum(2) / mask.to(torch::kFloat32).sum(2).clamp_min(1e-5);
  return y * factors(mean).unsqueeze(-1) + residual;
}

}  // namespace millrace
