#include "tests/parity/perceptual_net.h"

#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/vqgan/vgg16.h>

namespace millrace {

PerceptualNet perceptual_net(const Fixture& fixture, const std::string& prefix) {
  if (fixture.has(prefix + "features.0.weight")) {
    return Vgg16(fixture.with(prefix), "the fixture");
  }
  if (!fixture.has(prefix + "net.0.weight")) return {};
  auto of = [&](const char* name) { return fixture.tensor(prefix + "net." + name); };
  return [weight = of("0.weight"), bias = of("0.bias"), out = of("4.weight"),
          out_bias = of("4.bias")](const torch::Tensor& x) {
    torch::Tensor y = torch::relu(torch::conv2d(x, weight, bias, 1, 1));
    return torch::linear(torch::adaptive_avg_pool2d(y, {2, 2}).flatten(1), out, out_bias);
  };
}

}  // namespace millrace
