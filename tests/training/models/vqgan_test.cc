// Tests of the VQGAN that parity_check does not cover: VGG16, sizes, encoding and decoding.
#include "tests/reference.h"

#include <millrace/pipeline/base/error.h>
#include <millrace/training/checkpoint/checkpoint.h>
#include <millrace/training/checkpoint/tensors.h>
#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/nuwa/nuwa_vqgan.h>
#include <millrace/training/models/vqgan/packed_encoder.h>
#include <millrace/training/models/vqgan/vgg16.h>
#include <millrace/training/models/vqgan/vqgan.h>

#include <algorithm>
#include <string>

namespace millrace {
namespace {

VqganConfig tiny() {
  return {.dim = 16, .layers = 2, .codebook_size = 64, .discr_layers = 1, .num_resnet_blocks = {0}};
}

TEST(Vqgan, CodesGiveTheReconstructionBack) {
  for (bool lookup_free : {true, false}) {
    torch::manual_seed(1);
    VqganConfig config = tiny();
    config.lookup_free_quantization = lookup_free;
    config.vq.codebook_dim = 8;
    Vqgan model(config);
    torch::NoGradGuard no_grad;
    const torch::Tensor pictures = torch::rand({2, 3, 16, 24});
    model->eval();
    const torch::Tensor whole = model->reconstruct(pictures);
    const Quantized codes = model->encode(pictures);
    EXPECT_EQ(codes.indices.sizes(), (std::vector<std::int64_t>{2, 4, 6}));
    EXPECT_LT(codes.indices.max().item<std::int64_t>(), 64);
    EXPECT_TRUE(torch::allclose(model->decode_indices(codes.indices), whole, 1e-5, 1e-6));
  }
}

void expect_own_codes(PictureVaeImpl& model, const torch::Tensor& pictures) {
  torch::NoGradGuard no_grad;
  model.eval();
  const auto encode = model.packed_encoder();
  for (std::int64_t count : {pictures.size(0), std::int64_t{1}}) {
    const torch::Tensor some = pictures.narrow(0, 0, count);
    EXPECT_TRUE(torch::equal(encode(some), model.encode(some).indices)) << count;
  }
}

TEST(Vqgan, PackedEncoderGivesTheModelsOwnCodes) {
  for (bool lookup_free : {true, false}) {
    torch::manual_seed(7);
    VqganConfig config = tiny();
    config.lookup_free_quantization = lookup_free;
    config.num_resnet_blocks = {1};
    expect_own_codes(*Vqgan(config), torch::rand({5, 3, 32, 48}));
  }
  NuwaVqganConfig config{.dim = 64,
                         .image_size = 128,
                         .num_layers = 3,
                         .attn_dim_head = 16,
                         .attn_heads = 2,
                         .use_vgg_and_gan = false,
                         .vq = {.codebook_size = 64, .codebook_dim = 32, .use_cosine_sim = true}};
  expect_own_codes(*NuwaVqgan(config), torch::rand({3, 3, 128, 128}));
}

// Every feature lies on the border between two codes, so rounding alone would decide. The packed
// encoder must then use the features of the unpacked layers.
TEST(Vqgan, PackedEncoderDecidesNothingByItsOwnRounding) {
  torch::NoGradGuard no_grad;
  torch::manual_seed(8);
  torch::nn::Sequential layers(
      torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 64, 5).padding(2)),
      torch::nn::Conv2d(torch::nn::Conv2dOptions(64, 64, 4).stride(2).padding(1)),
      torch::nn::LeakyReLU(torch::nn::LeakyReLUOptions().negative_slope(0.1)));
  const torch::Tensor pictures = torch::rand({2, 3, 64, 64});
  const torch::Tensor border = layers->forward(pictures);
  double most = 0;
  const PackedEncoder encoder(layers, [&](const torch::Tensor& features) {
    const torch::Tensor above = (features - border) / border.abs().mean();
    most = std::max(most, above.abs().max().item<double>());
    return ChosenCodes{.indices = above.gt(0).to(torch::kInt64), .margins = above.abs()};
  });
  EXPECT_EQ(encoder(pictures).sum().item<std::int64_t>(), 0);
  EXPECT_LT(most, 1e-4);  // only the order of summation differs
}

// parity_check would see a difference here as a rounding error only. It grows where codes are close
// to each other.
TEST(Vqgan, CodebookRoundsAsThePackageDoes) {
  for (std::int64_t batch : {1, 2}) {
    torch::manual_seed(1);
    VectorQuantizer quantizer(VectorQuantizerOptions{
        .dim = 24, .codebook_size = 16, .codebook_dim = 8, .use_cosine_sim = true});
    const torch::Tensor codes = quantizer->forward(torch::rand({batch, 24, 4, 6})).features;
    EXPECT_TRUE(codes.is_contiguous(torch::MemoryFormat::ChannelsLast)) << "batch " << batch;
    const auto buffers = quantizer->named_buffers();
    const torch::Tensor sizes = buffers["_codebook.cluster_size"];
    const torch::Tensor total = sizes.sum(-1, true);
    const torch::Tensor smooth = (sizes + 1e-5) / (total + 16 * 1e-5) * total;
    auto unit = [](const torch::Tensor& x) { return x / x.norm(2, -1, true).clamp_min(1e-12); };
    const torch::Tensor means = buffers["_codebook.embed_avg"] / smooth.unsqueeze(-1);
    EXPECT_TRUE(torch::equal(buffers["_codebook.embed"], unit(unit(means))));
  }
}

TEST(Vqgan, CountsTheQuantizerWithoutADiscriminatorToo) {
  VqganConfig config = tiny();
  config.use_vgg_and_gan = false;
  Vqgan model(config);
  const torch::Tensor pictures = torch::rand({2, 3, 16, 16});
  const GeneratorLoss loss = model->generator_loss(pictures);
  EXPECT_NE(loss.quantizer.item<float>(), 0);
  EXPECT_TRUE(torch::equal(loss.total, loss.reconstruction + loss.quantizer));
  const GeneratorLoss python = model->generator_loss(pictures, {.as_in_python = true});
  EXPECT_TRUE(torch::equal(python.total, python.reconstruction));
}

TEST(Vqgan, HeedsTheDiscriminatorAsMuchAsItIsTold) {
  auto gradient = [](double weight, GeneratorLoss& loss) {
    torch::manual_seed(1);
    Vqgan model(tiny());
    loss = model->generator_loss(torch::rand({2, 3, 16, 16}), {.adversarial_weight = weight});
    loss.backward();
    return model->generator_parameters().front().grad();
  };
  GeneratorLoss all, half, none;
  const torch::Tensor with = gradient(1, all), between = gradient(0.5, half),
                      without = gradient(0, none);
  EXPECT_TRUE(torch::equal(half.adaptive_weight, all.adaptive_weight * 0.5));
  EXPECT_TRUE(torch::equal(none.total, none.reconstruction + none.perceptual + none.quantizer));
  EXPECT_GT((with - without).norm().item<double>(), 0.01 * without.norm().item<double>());
  EXPECT_TRUE(torch::allclose(between, (with + without) / 2, 1e-3, 1e-6));
}

TEST(Vqgan, SaysWhichSizeItCannotTake) {
  Vqgan model(tiny());
  try {
    model->reconstruct(torch::rand({1, 3, 16, 18}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("multiples of 4"), std::string::npos) << error.what();
  }
  EXPECT_THROW(model->reconstruct(torch::rand({1, 1, 16, 16})), Error);
  EXPECT_THROW(Vqgan(VqganConfig{.dim = 20}), Error);
  VqganConfig odd = tiny();
  odd.codebook_size = 100;
  EXPECT_THROW(Vqgan{odd}, Error);
}

TEST(Vqgan, ConfigurationGoesThroughJson) {
  VqganConfig config = tiny();
  config.lfq.soft_clamp_input_value = 3;
  config.layer_mults = {1, 3};
  const VqganConfig again = VqganConfig::from_json(config.to_json());
  EXPECT_EQ(again.to_json(), config.to_json());
  EXPECT_EQ(again.layer_dims(), (std::vector<std::int64_t>{16, 48}));
  // As in Python, given codebook arguments replace all default ones.
  EXPECT_FALSE(VqganConfig::from_json(R"({"dim": 16, "vq_codebook_dim": 8})").vq.kmeans_init);
  EXPECT_THROW(VqganConfig::from_json(R"({"dim": 16, "dimm": 3})"), Error);
  EXPECT_THROW(VqganConfig::from_json(R"({"dim": "wide"})"), Error);
}

TEST(Vqgan, EveryParameterBelongsToOneOptimizer) {
  Vqgan model(tiny());
  EXPECT_EQ(model->generator_parameters().size() + model->discriminator_parameters().size(),
            model->parameters().size());
}

// Torchvision's architecture with a sixteenth of its channels.
TEST(Vgg16, EqualsTorchvisionsNetwork) {
  if (!MILLRACE_PYTHON_TORCH) GTEST_SKIP() << "Python cannot import torch here";
  TemporaryFolder folder;
  run_python(R"(
import sys, torch
from torch import nn
torch.manual_seed(0)
features, inputs = [], 3
for width in [4, 4, 'M', 8, 8, 'M', 16, 16, 16, 'M', 32, 32, 32, 'M', 32, 32, 32, 'M']:
    if width == 'M': features.append(nn.MaxPool2d(2, 2))
    else: features += [nn.Conv2d(inputs, width, 3, padding=1), nn.ReLU(True)]; inputs = width
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(*features)
        self.avgpool = nn.AdaptiveAvgPool2d(7)
        self.classifier = nn.Sequential(nn.Linear(32 * 49, 64), nn.ReLU(), nn.Dropout(), nn.Linear(64, 64), nn.ReLU(), nn.Dropout(), nn.Linear(64, 10))
net = Net().eval()
state = net.state_dict()
net.classifier = nn.Sequential(*net.classifier[:-2])
x = torch.rand(2, 3, 64, 48)
with torch.no_grad(): y = net.classifier(torch.flatten(net.avgpool(net.features(x)), 1))
torch.save(state, sys.argv[1])
torch.save({'x': x, 'y': y}, sys.argv[2])
)",
             (folder / "vgg.pt").string() + " " + (folder / "xy.pt").string());
  const Vgg16 vgg = Vgg16::from_file(folder / "vgg.pt");
  const Value pair = read_checkpoint(folder / "xy.pt");
  EXPECT_TRUE(torch::allclose(vgg(as_tensor(pair["x"])), as_tensor(pair["y"]), 1e-5, 1e-7));
  try {
    Vgg16::from_file(folder / "xy.pt");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("no tensor 'features.0.weight'"), std::string::npos);
  }
}

}  // namespace
}  // namespace millrace
