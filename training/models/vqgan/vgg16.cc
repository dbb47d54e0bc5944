#include <millrace/pipeline/base/error.h>
#include <millrace/training/checkpoint/checkpoint.h>
#include <millrace/training/checkpoint/tensors.h>
#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/vqgan/vgg16.h>

#include <array>
#include <map>

#include <c10/util/StringUtil.h>

namespace millrace {

namespace {

// Indices of the convolutions in torchvision's `features`, and whether max pooling follows.
constexpr std::array<std::pair<int, bool>, 13> places{{{0, false},
                                                       {2, true},
                                                       {5, false},
                                                       {7, true},
                                                       {10, false},
                                                       {12, false},
                                                       {14, true},
                                                       {17, false},
                                                       {19, false},
                                                       {21, true},
                                                       {24, false},
                                                       {26, false},
                                                       {28, true}}};
constexpr std::int64_t pooled = 7;  // side of the pooled feature map

}  // namespace

Vgg16 Vgg16::from_file(const std::filesystem::path& path) {
  const Value state = read_checkpoint(path);
  NamedTensors tensors;
  for (const auto& [name, tensor] : state.as_dict()) {
    tensors.emplace_back(name.as_string(), as_tensor(tensor));
  }
  return {tensors, path.string()};
}

Vgg16::Vgg16(const NamedTensors& tensors, const std::string& source) {
  std::map<std::string, torch::Tensor> by_name(tensors.begin(), tensors.end());
  auto take = [&](const std::string& name, std::int64_t dims, std::int64_t inputs) {
    auto found = by_name.find(name);
    const bool fits =
        found != by_name.end() && found->second.dim() == dims &&
        (dims == 1 ? found->second.size(0) == inputs : found->second.size(1) == inputs) &&
        (dims != 4 || (found->second.size(2) == 3 && found->second.size(3) == 3));
    if (!fits) {
      throw Error(
          c10::str(found == by_name.end() ? "has no tensor '" : "has the wrong shape for VGG16: '",
                   name, "'"))
          .at(source)
          .hint("The file must be the state_dict of torchvision's vgg16");
    }
    return found->second.detach().to(torch::kFloat32);
  };
  std::int64_t inputs = 3;
  for (const auto& [place, pool] : places) {
    const std::string name = c10::str("features.", place, ".");
    Layer layer{.weight = take(name + "weight", 4, inputs), .bias = {}, .pool_after = pool};
    inputs = layer.weight.size(0);
    layer.bias = take(name + "bias", 1, inputs);
    convolutions_.push_back(std::move(layer));
  }
  inputs *= pooled * pooled;
  for (const char* name : {"classifier.0.", "classifier.3."}) {
    Layer layer{.weight = take(std::string(name) + "weight", 2, inputs), .bias = {}};
    inputs = layer.weight.size(0);
    layer.bias = take(std::string(name) + "bias", 1, inputs);
    linear_.push_back(std::move(layer));
  }
}

torch::Tensor Vgg16::operator()(const torch::Tensor& pictures) const {
  torch::Tensor x = pictures;
  for (const Layer& layer : convolutions_) {
    x = torch::relu(torch::conv2d(x, layer.weight, layer.bias, 1, 1));
    if (layer.pool_after) x = torch::max_pool2d(x, 2, 2);
  }
  x = torch::adaptive_avg_pool2d(x, {pooled, pooled}).flatten(1);
  for (const Layer& layer : linear_) x = torch::relu(torch::linear(x, layer.weight, layer.bias));
  return x;
}

void Vgg16::to(torch::Device device) {
  for (auto* layers : {&convolutions_, &linear_}) {
    for (Layer& layer : *layers) {
      layer.weight = layer.weight.to(device);
      layer.bias = layer.bias.to(device);
    }
  }
}

}  // namespace millrace
