// Tests of the video tokenizer that parity_check does not cover: refused configurations, and
// features that fail in the Python package.
#include <millrace/pipeline/base/error.h>
#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/module/module_tensors.h>
#include <millrace/training/models/video_tokenizer/video_tokenizer.h>

#include <string>
#include <utility>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace millrace {
namespace {

VideoTokenizerConfig tiny() {
  VideoTokenizerConfig config{.image_size = 8,
                              .layers = {{"compress_space"}, {"compress_time", 6}, {"residual"}},
                              .codebook_size = 16,
                              .init_dim = 4,
                              .input_conv_kernel_size = {3, 3, 3},
                              .attn_dim_head = 4,
                              .attn_heads = 2,
                              .linear_attn_dim_head = 2,
                              .linear_attn_heads = 2};
  config.discr_kwargs = {.dim = 1, .max_dim = 4, .linear_attn_dim_head = 2, .linear_attn_heads = 1};
  return config;
}

std::string refusal(auto&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(VideoTokenizer, CodesGiveTheReconstructionBack) {
  torch::NoGradGuard no_grad;
  for (bool finite_scalar : {false, true}) {
    torch::manual_seed(1);
    VideoTokenizerConfig config = tiny();
    if (finite_scalar) {
      config.codebook_size = 0;
      config.use_fsq = true;
      config.fsq_levels = {4, 5};
      config.num_codebooks = 2;
    }
    VideoTokenizer model(config);
    const torch::Tensor video = torch::rand({2, 3, 5, 8, 8});
    const torch::Tensor codes = model->tokenize(video);
    EXPECT_TRUE(model->is_training());
    EXPECT_EQ(codes.sizes().slice(0, 4), (std::vector<std::int64_t>{2, 3, 4, 4}));
    const torch::Tensor whole = model->reconstruct(video);
    EXPECT_EQ(whole.sizes(), video.sizes());
    EXPECT_TRUE(torch::allclose(model->decode_from_code_indices(codes), whole, 1e-4, 1e-5));
    const torch::Tensor flat = codes.flatten(1, 3);
    EXPECT_TRUE(torch::equal(model->decode_from_code_indices(flat),
                             model->decode_from_code_indices(codes)));
  }
}

TEST(VideoTokenizer, PicturesAreVideosOfOneFrameAlsoWithTheFirstFrameApart) {
  VideoTokenizerConfig config = tiny();
  config.separate_first_frame_encoding = true;  // with this, pictures fail in the package
  VideoTokenizer model(config);
  const torch::Tensor pictures = torch::rand({2, 3, 8, 8});
  EXPECT_EQ(model->reconstruct(pictures).sizes(), (std::vector<std::int64_t>{2, 3, 1, 8, 8}));
  VideoGeneratorLoss loss = model->generator_loss(pictures);
  loss.backward();
  EXPECT_TRUE(loss.total.isfinite().item<bool>());
}

TEST(VideoTokenizer, SaysWhatItCannotTake) {
  VideoTokenizer model(tiny());
  EXPECT_NE(refusal([&] {
              model->reconstruct(torch::rand({1, 3, 4, 8, 8}));
            }).find("multiple of 2, but there are 4"),
            std::string::npos);
  EXPECT_NE(refusal([&] {
              model->reconstruct(torch::rand({1, 3, 5, 8, 16}));
            }).find("[1, 3, 5"),
            std::string::npos);
  auto config_refusal = [](const std::string& json) {
    return refusal([&] { VideoTokenizerConfig::from_json(json); });
  };
  EXPECT_NE(config_refusal(R"({"image_size": 8})").find("codebook_size"), std::string::npos);
  EXPECT_NE(config_refusal(R"({"image_size": 8, "codebook_size": 4, "dimm": 3})").find("dimm"),
            std::string::npos);
  EXPECT_NE(config_refusal(R"({"image_size": 8, "codebook_size": 4, "layers": ["resid"]})")
                .find("unknown layer type resid"),
            std::string::npos);
  EXPECT_NE(config_refusal(R"({"image_size": 8, "codebook_size": 4, "layers": ["cond_residual"]})")
                .find("dim_cond"),
            std::string::npos);
  EXPECT_NE(config_refusal(R"({"image_size": 10, "codebook_size": 4,
                               "layers": ["compress_space", "compress_space"]})")
                .find("multiple of 4"),
            std::string::npos);
}

TEST(VideoTokenizer, ConfigurationGoesThroughJsonAndLayersAreWrittenAsInPython) {
  VideoTokenizerConfig config = tiny();
  config.multiscale_discrs = {{.dim = 1, .scale = 2}};
  config.max_dim = 32;
  const VideoTokenizerConfig again = VideoTokenizerConfig::from_json(config.to_json());
  EXPECT_EQ(again.to_json(), config.to_json());
  for (const char* text : {R"("residual", ("compress_space", 128), ('compress_time',))",
                           R"(['residual', ["compress_space", 128], "compress_time"])",
                           R"(("residual", ("compress_space", 128), "compress_time",))",
                           "residual compress_space:128,compress_time"}) {
    const nlohmann::json given{{"image_size", 8}, {"codebook_size", 4}, {"layers", text}};
    for (const auto& layers :
         {parse_video_layers({text}), VideoTokenizerConfig::from_json(given.dump()).layers}) {
      ASSERT_EQ(layers.size(), 3U) << text;
      EXPECT_EQ(layers[1].type, "compress_space");
      EXPECT_EQ(layers[1].size, 128);
      EXPECT_FALSE(layers[2].size.has_value());
    }
  }
  EXPECT_EQ(parse_video_layers({R"([["compress_space")", "128]]"}).at(0).size, 128);
  EXPECT_THROW(parse_video_layers({"residual; residual"}), Error);
  EXPECT_THROW(parse_video_layers({"compress_space:1234567890"}), Error);
}

// In the package these layers fail, or they run only if the last layer is conditional too.
TEST(VideoTokenizer, EveryConditionalLayerSeesTheCondition) {
  for (const char* type :
       {"cond_residual", "cond_attend_space", "cond_attend_time", "cond_linear_attend_space"}) {
    torch::manual_seed(2);
    VideoTokenizerConfig config = tiny();
    config.layers = {{type}, {"attend_time"}, {"compress_space"}};
    config.dim_cond = 3;
    VideoTokenizer model(config);
    const VideoOptions options{.cond = torch::randn({2, 3})};
    const torch::Tensor video = torch::rand({2, 3, 2, 8, 8});
    EXPECT_THROW(model->encode(video), Error) << type;
    model->reconstruct(video, options).square().mean().backward();
    double reached = 0;
    for (const auto& [name, parameter] : parameter_tensors(*model)) {
      const bool stem = name.starts_with("decoder_layers.2") &&
                        (name.find("to_gamma") != name.npos || name.find("to_cond") != name.npos);
      if (stem && parameter.grad().defined()) reached += parameter.grad().norm().item<double>();
    }
    EXPECT_GT(reached, 0) << type;
  }
}

// `compat` runs the operations in the package's order, which parity_check compares. Training uses
// fewer operations.
TEST(VideoTokenizer, TrainingAndCompatDifferInRoundingAlone) {
  auto run = [](bool compat, bool discriminator) {
    torch::manual_seed(4);
    VideoTokenizerConfig config = tiny();
    config.layers = {{"compress_time"}, {"gateloop_time"}, {"linear_attend_space"}};
    config.compat = compat;
    VideoTokenizer model(config);
    model->set_perceptual_net([](const torch::Tensor& x) { return torch::avg_pool2d(x, 2); });
    const torch::Tensor video = torch::rand({2, 3, 5, 8, 8});
    VideoLossOptions options;
    options.discriminator_gradients = discriminator;
    VideoGeneratorLoss loss = model->generator_loss(video, options);
    EXPECT_GT(loss.adaptive_weight.item<double>(), 0);
    std::vector<torch::Tensor> found{loss.total.reshape({1})};
    loss.backward();
    for (const auto& [name, parameter] : parameter_tensors(*model)) {
      if (parameter.grad().defined()) found.push_back(parameter.grad().flatten());
    }
    return torch::cat(found);
  };
  for (bool discriminator : {false, true}) {
    const torch::Tensor ours = run(false, discriminator), python = run(true, discriminator);
    ASSERT_EQ(ours.sizes(), python.sizes());
    EXPECT_LT((ours - python).norm().item<double>(), 1e-5 * python.norm().item<double>());
  }
}

// Every layer that changes shapes, and every discriminator, in both memory formats.
TEST(VideoTokenizer, ChannelsLastDiffersInRoundingAlone) {
  auto run = [](bool channels_last, std::int64_t frames) {
    torch::manual_seed(6);
    VideoTokenizerConfig config = tiny();
    config.init_dim = 16;
    config.layers = {{"residual"},
                     {"compress_space", 18},
                     {"attend_space"},
                     {"compress_time"},
                     {"consecutive_residual", 1},
                     {"linear_attend_space"},
                     {"gateloop_time"},
                     {"attend_time"},
                     {"cond_residual"}};
    config.dim_cond = 3;
    config.image_size = 16;
    config.discr_kwargs->dim = config.discr_kwargs->max_dim = 8;
    config.discr_kwargs->antialiased_downsample = true;
    config.multiscale_discrs = {{.dim = 2, .max_dim = 8, .linear_attn_heads = 1, .scale = 2}};
    VideoTokenizer model(config);
    model->set_channels_last(channels_last);
    const torch::Tensor video = torch::rand({2, 3, frames, 16, 16});
    VideoLossOptions options{.video = {.cond = torch::randn({2, 3})}};
    const torch::Tensor codes = model->tokenize(video, options.video);
    VideoGeneratorLoss loss = model->generator_loss(video, options);
    loss.backward();
    const VideoDiscriminatorLoss real_or_fake = model->discriminator_loss(video, options);
    real_or_fake.total.backward();
    std::vector<torch::Tensor> found{loss.total.reshape({1}), real_or_fake.total.reshape({1})};
    for (const auto& [name, parameter] : parameter_tensors(*model)) {
      EXPECT_TRUE(parameter.is_contiguous()) << name;
      if (parameter.grad().defined()) found.push_back(parameter.grad().flatten());
    }
    return std::pair(codes, torch::cat(found).detach());
  };
  for (std::int64_t frames : {1, 5}) {
    const auto [codes, plain] = run(false, frames);
    const auto [last_codes, last] = run(true, frames);
    EXPECT_TRUE(torch::equal(last_codes, codes));
    ASSERT_EQ(last.sizes(), plain.sizes());
    EXPECT_LT((last - plain).norm().item<double>(), 1e-5 * plain.norm().item<double>()) << frames;
  }
}

// In the package the adversarial loss then has weight 1 and dominates the reconstruction loss.
TEST(VideoTokenizer, WithoutAPerceptualLossDiscriminatorsAreWeighedAgainstTheReconstruction) {
  torch::manual_seed(7);
  VideoTokenizerConfig config = tiny();
  config.separate_first_frame_encoding = true;
  VideoTokenizer model(config);
  const torch::Tensor video = torch::rand({2, 3, 3, 8, 8});
  auto slopes = [&](bool adversarial, bool weigh) {
    model->zero_grad();
    torch::manual_seed(8);  // selects the frames for the discriminator
    VideoGeneratorLoss loss = model->generator_loss(
        video, {.adversarial = adversarial, .weigh_against_reconstruction = weigh});
    loss.backward();
    std::vector<torch::Tensor> last;
    for (const auto& [name, parameter] : parameter_tensors(*model)) {
      const bool weight = name == "conv_out.conv.weight" || name == "conv_out_first_frame.weight";
      if (weight) last.push_back(parameter.grad().flatten().clone());
    }
    EXPECT_EQ(last.size(), 2U);
    return std::pair(torch::cat(last), loss.adaptive_weight.item<double>());
  };
  const torch::Tensor reconstruction = slopes(false, false).first;
  const auto [whole, one] = slopes(true, false);
  const auto [weighed, weight] = slopes(true, true);
  EXPECT_EQ(one, 1);
  const torch::Tensor adversarial = whole - reconstruction;
  const double ratio = reconstruction.norm().item<double>() / adversarial.norm().item<double>();
  EXPECT_NEAR(weight, ratio, 1e-3 * ratio);
  EXPECT_TRUE(torch::allclose(weighed, reconstruction + adversarial * weight, 1e-3, 1e-7));
}

// The package's loss never calls the multi-scale discriminators.
TEST(VideoTokenizer, MultiscaleDiscriminatorsAreAsked) {
  torch::manual_seed(3);
  VideoTokenizerConfig config = tiny();
  config.multiscale_discrs = {{.dim = 1, .max_dim = 4, .linear_attn_heads = 1, .scale = 2}};
  VideoTokenizer model(config);
  const torch::Tensor video = torch::rand({2, 3, 3, 8, 8});
  const VideoGeneratorLoss before = model->generator_loss(video);
  {
    torch::NoGradGuard no_grad;
    for (torch::Tensor& parameter : model->multiscale_parameters(0)) parameter.mul_(3);
  }
  const VideoGeneratorLoss after = model->generator_loss(video);
  EXPECT_NE(before.multiscale.at(0).item<double>(), after.multiscale.at(0).item<double>());
  model->zero_grad();
  model->discriminator_loss(video).total.backward();
  EXPECT_GT(model->multiscale_parameters(0)[0].grad().norm().item<double>(), 0);
  EXPECT_FALSE(model->generator_parameters()[0].grad().defined());
}

}  // namespace
}  // namespace millrace
