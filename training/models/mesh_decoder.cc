#include "mesh_decoder.h"

#include <millrace/training/models/module_tensors.h>
#include <millrace/training/models/quantizer.h>

#include <algorithm>
#include <cmath>

#include <torch/torch.h>

namespace millrace {

namespace nn = torch::nn;

namespace {

torch::Tensor only(const torch::Tensor& x, const torch::Tensor& mask) {
  return mask.defined() ? x * mask : x;
}

std::int64_t squeezed(std::int64_t dim) {
  return std::max<std::int64_t>(dim / 4, 16);
}

}  // namespace

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

// The mask is applied to a convolution's input by whoever made it.
torch::Tensor FaceResnetBlockImpl::block(nn::Conv1d& conv, const torch::Tensor& x,
                                         const torch::Tensor& mask) {
  const torch::Tensor y = conv->forward(x);
  const torch::Tensor length = y.norm(2, 1, true).clamp_min(1e-4);
  torch::Tensor scale = std::sqrt(static_cast<double>(y.size(1))) / length;
  // Without the absent faces from here on: what is 0 stays so.
  const torch::Tensor z = torch::silu(y * only(scale, mask));
  return dropout_ > 0 ? torch::dropout(z, dropout_, is_training()) : z;
}

torch::Tensor FaceResnetBlockImpl::excite(const torch::Tensor& x, const torch::Tensor& mask) {
  torch::Tensor mean = x.sum(2);
  if (mask.defined()) {
    mean = mean / mask.to(x.scalar_type()).sum(2).clamp_min(1e-5);
  } else {
    mean = mean / x.size(2);
  }
  return project(excite_, torch::silu(project(squeeze_, mean))).sigmoid().unsqueeze(-1);
}

torch::Tensor FaceResnetBlockImpl::forward(const torch::Tensor& x, const torch::Tensor& mask) {
  torch::Tensor y = block(first_, only(x, mask), mask);
  y = block(second_, y, mask);
  const torch::Tensor residual = residual_ ? residual_->forward(x) : x;
  return torch::addcmul(residual, y, excite(y, mask));
}

}  // namespace millrace
