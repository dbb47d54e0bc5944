#include "packed_encoder.h"

#include "vqgan_layers.h"

#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/nuwa/nuwa_vqgan_layers.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>

#include <ATen/core/dispatch/Dispatcher.h>

namespace millrace {

namespace nn = torch::nn;

namespace {

// The largest relative change of a feature vector that a different order of sums has caused in
// measurements.
constexpr double least_margin = 2e-6;

// LibTorch's convolution with packed weights and a fused activation. It has no C++ function, so it
// is looked up in the dispatcher.
using PackedConvolution = torch::Tensor(const torch::Tensor&, const torch::Tensor&,
                                        const std::optional<torch::Tensor>&, c10::IntArrayRef,
                                        c10::IntArrayRef, c10::IntArrayRef, std::int64_t,
                                        std::string_view, c10::List<std::optional<c10::Scalar>>,
                                        std::optional<std::string_view>);

std::optional<c10::TypedOperatorHandle<PackedConvolution>> packed_convolution() {
  if (!at::hasMKLDNN()) return std::nullopt;
  const auto found =
      c10::Dispatcher::singleton().findSchema({"mkldnn::_convolution_pointwise", ""});
  return found ? std::optional(found->typed<PackedConvolution>()) : std::nullopt;
}

using Step = std::function<torch::Tensor(const torch::Tensor&)>;

// Caches a tensor that depends on the input's size alone. Thread-safe.
class CacheBySize {
 public:
  template <class Make>
  torch::Tensor get(const torch::Tensor& input, const Make& make) {
    const std::lock_guard lock(mutex_);
    torch::Tensor& cached = cached_[input.sizes().vec()];
    if (!cached.defined()) cached = make();
    return cached;
  }

 private:
  std::mutex mutex_;
  std::map<std::vector<std::int64_t>, torch::Tensor> cached_;
};

// A convolution, fused with the LeakyReLU that follows it, if any.
Step packed(const nn::Conv2d& conv, const nn::LeakyReLU& activation = nullptr) {
  const auto& o = conv->options;
  const auto operation = packed_convolution();
  const auto* padding = std::get_if<torch::ExpandingArray<2>>(&o.padding());
  if (!operation || padding == nullptr ||
      !std::holds_alternative<torch::enumtype::kZeros>(o.padding_mode())) {
    return [conv, activation](const torch::Tensor& x) {
      const torch::Tensor y = nn::Conv2d(conv)->forward(x);
      return activation ? nn::LeakyReLU(activation)->forward(y) : y;
    };
  }
  auto both = [](const torch::ExpandingArray<2>& sides) {
    return std::vector<std::int64_t>(sides->begin(), sides->end());
  };
  const std::vector<std::int64_t> padding_sizes = both(*padding), stride = both(o.stride());
  const std::vector<std::int64_t> dilation = both(o.dilation());
  const std::optional<torch::Tensor> bias =
      conv->bias.defined() ? std::optional(conv->bias.detach()) : std::nullopt;
  c10::List<std::optional<c10::Scalar>> scalars;
  if (activation) scalars.push_back(c10::Scalar(activation->options.negative_slope()));
  const std::string_view name = activation ? "leaky_relu" : "none";
  return [=, groups = o.groups(),
          weights = std::make_shared<CacheBySize>()](const torch::Tensor& x) {
    const torch::Tensor in = x.contiguous(torch::MemoryFormat::ChannelsLast);
    // The input size is passed because without it oneDNN packs 1x1 kernels for a slow
    // implementation.
    const torch::Tensor weight = weights->get(in, [&] {
      return at::mkldnn_reorder_conv2d_weight(conv->weight.detach().contiguous().to_mkldnn(),
                                              padding_sizes, stride, dilation, groups, in.sizes());
    });
    return operation->call(in, weight, bias, padding_sizes, stride, dilation, groups, name, scalars,
                           "");
  };
}

Step packed(const VqganAttention& attention) {
  return [attention, to_qkv = packed(attention->to_qkv()), to_out = packed(attention->to_out()),
          biases = std::make_shared<CacheBySize>()](const torch::Tensor& x) {
    VqganAttention same = attention;
    return same->attend(x, to_qkv, to_out, biases->get(x, [&] { return same->bias(x); }));
  };
}

std::vector<Step> steps_of(const nn::Sequential& layers);

Step chain(std::vector<Step> steps) {
  return [steps = std::move(steps)](const torch::Tensor& x) {
    torch::Tensor y = x;
    for (const Step& step : steps) y = step(y);
    return y;
  };
}

std::vector<Step> steps_of(const nn::Sequential& layers) {
  std::vector<Step> steps;
  const std::size_t count = layers->size();
  for (std::size_t i = 0; i < count; ++i) {
    const std::shared_ptr<nn::Module> layer = layers->ptr(i);
    if (const auto conv = std::dynamic_pointer_cast<nn::Conv2dImpl>(layer)) {
      const auto next = i + 1 < count
                            ? std::dynamic_pointer_cast<nn::LeakyReLUImpl>(layers->ptr(i + 1))
                            : nullptr;
      steps.push_back(
          packed(nn::Conv2d(conv), next ? nn::LeakyReLU(next) : nn::LeakyReLU(nullptr)));
      if (next) ++i;
    } else if (const auto block = std::dynamic_pointer_cast<ConvBlockImpl>(layer)) {
      steps.push_back(chain(steps_of(block->parts())));
    } else if (const auto attention = std::dynamic_pointer_cast<VqganAttentionImpl>(layer)) {
      steps.push_back(packed(VqganAttention(attention)));
    } else if (const auto residual = std::dynamic_pointer_cast<ResidualImpl>(layer)) {
      steps.push_back(
          [net = chain(steps_of(residual->net()))](const torch::Tensor& x) { return net(x) + x; });
    } else {
      const auto at = static_cast<std::ptrdiff_t>(i);
      steps.push_back([module = *(layers->begin() + at)](const torch::Tensor& x) {
        return nn::AnyModule(module).forward(x);
      });
    }
  }
  return steps;
}

// The number of pictures for which the first convolution's output fits the processor's caches.
std::int64_t pictures_at_once(const nn::Sequential& layers, const torch::Tensor& pictures) {
  constexpr std::int64_t most = std::int64_t{2} << 20;  // floats
  const auto first = std::dynamic_pointer_cast<nn::Conv2dImpl>(layers->ptr(0));
  const std::int64_t channels = first ? first->options.out_channels() : pictures.size(1);
  return std::max<std::int64_t>(most / (channels * pictures.size(2) * pictures.size(3)), 1);
}

}  // namespace

PackedEncoder::PackedEncoder(const nn::Sequential& layers, Quantize quantize)
    : layers_(layers), steps_(steps_of(layers)), quantize_(std::move(quantize)) {}

torch::Tensor PackedEncoder::operator()(const torch::Tensor& pictures) const {
  std::vector<torch::Tensor> features;
  for (const torch::Tensor& some : pictures.split(pictures_at_once(layers_, pictures))) {
    torch::Tensor x = some;
    for (const Step& step : steps_) x = step(x);
    features.push_back(x);
  }
  const ChosenCodes chosen = quantize_(torch::cat(features));
  if (!chosen.margins.lt(least_margin).any().item<bool>()) return chosen.indices;
  nn::Sequential layers = layers_;
  return quantize_(layers->forward(pictures)).indices;
}

}  // namespace millrace
