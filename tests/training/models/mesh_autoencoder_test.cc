// Tests of the mesh autoencoder that parity_check does not cover: checkpoints of the Python
// trainer, train and eval mode, invalid sizes, and memory.
#include "tests/reference.h"

#include <millrace/pipeline/base/error.h>
#include <millrace/training/checkpoint/checkpoint.h>
#include <millrace/training/checkpoint/tensors.h>
#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/mesh_autoencoder/mesh_autoencoder.h>
#include <millrace/training/models/module/module_tensors.h>
#include <millrace/training/models/quantizers/lfq.h>
#include <millrace/training/optim/ema.h>
#include <millrace/training/optim/optimizer.h>

#include <fstream>

#include <nlohmann/json.hpp>

namespace millrace {
namespace {

std::filesystem::path saved(const std::string& name) {
  return std::filesystem::path(MILLRACE_SOURCE_DIR) / "tests/training/python_trainer" / name;
}

MeshAutoencoderConfig tiny() {
  return {.num_discrete_coors = 8,
          .dim_coor_embed = 2,
          .encoder_dims_through_depth = {6},
          .decoder_dims_through_depth = {6, 6},
          .dim_codebook = 4,
          .codebook_size = 16};
}

Meshes tetrahedron() {
  return {
      .vertices = torch::tensor(
                      {{0.9F, 0.F, 0.F}, {0.F, 0.8F, 0.F}, {0.F, 0.F, 0.7F}, {-0.5F, -0.5F, -0.5F}})
                      .unsqueeze(0),
      .faces =
          torch::tensor({{0, 1, 2}, {0, 1, 3}, {0, 2, 3}, {1, 2, 3}}, torch::kInt64).unsqueeze(0)};
}

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing";
}

TEST(MeshAutoencoder, OfTheTrainerInPythonGivesItsCodes) {
  std::ifstream file(saved("mesh_autoencoder.json"));
  const auto wanted = nlohmann::json::parse(file);
  const Value trainer = read_checkpoint(saved("mesh_autoencoder.pt"));
  // The configuration in it is a pickle inside the pickle.
  const Value config = read_pickle(trainer["config"].as_bytes());
  EXPECT_EQ(config.as_list()[1]["codebook_size"].as_int(), wanted["config"]["codebook_size"]);
  MeshAutoencoder model(MeshAutoencoderConfig::from_json(wanted["config"].dump()));
  copy_tensors(trainer["model"], state_tensors(*model), "model");
  Optimizer optimizer(model->parameters(), {});
  optimizer.load(trainer["optimizer"]["optimizer"], "optimizer");
  Ema ema(state_tensors(*model), state_tensors(*model));
  ema.load(trainer["ema_model"], "ema_model");
  EXPECT_EQ(ema.step(), 3);
  const auto vertices = wanted["vertices"].get<std::vector<std::array<float, 3>>>();
  const auto faces = wanted["faces"].get<std::vector<std::array<std::int64_t, 3>>>();
  auto rows = [](const auto& list, c10::ScalarType type) {
    auto* data = const_cast<void*>(static_cast<const void*>(list.data()));
    return torch::from_blob(data, {1, static_cast<std::int64_t>(list.size()), 3}, type);
  };
  const torch::Tensor codes = model->tokenize(
      {.vertices = rows(vertices, torch::kFloat32), .faces = rows(faces, torch::kInt64)});
  const auto theirs = wanted["codes"].get<std::vector<std::int64_t>>();
  EXPECT_TRUE(torch::equal(codes.flatten(), torch::tensor(theirs, torch::kInt64)));
}

TEST(MeshAutoencoder, PutsItsModeBack) {
  MeshAutoencoder model(tiny());
  const torch::Tensor codes = model->tokenize(tetrahedron());
  EXPECT_TRUE(model->is_training());
  EXPECT_EQ(codes.sizes(), torch::IntArrayRef({1, 12, 2}));
  model->decode_from_codes_to_faces(codes);
  EXPECT_TRUE(model->is_training());
  model->eval();
  model->reconstruct(tetrahedron());
  EXPECT_FALSE(model->is_training());
}

TEST(MeshAutoencoder, TakesAMeshOfOneFaceBesideAnother) {
  MeshAutoencoder model(tiny());
  Meshes both = tetrahedron();
  both.vertices = both.vertices.repeat({2, 1, 1});
  both.faces = torch::stack({both.faces[0], torch::full({4, 3}, -1, torch::kInt64)});
  both.faces[1][0] = torch::tensor({3, 1, 0}, torch::kInt64);
  const MeshLoss loss = model->loss(both);
  loss.total.backward();
  EXPECT_TRUE(std::isfinite(loss.total.item<double>()));
  // The second mesh alone has the same codes.
  Meshes alone{.vertices = both.vertices.narrow(0, 1, 1),
               .faces = both.faces.narrow(0, 1, 1).narrow(1, 0, 1)};
  EXPECT_TRUE(torch::equal(model->tokenize(both)[1].narrow(0, 0, 3), model->tokenize(alone)[0]));
}

TEST(MeshAutoencoder, SaysWhatCannotBe) {
  MeshAutoencoder model(tiny());
  Meshes meshes = tetrahedron();
  meshes.faces = meshes.faces + 1;
  EXPECT_NE(refusal([&] { model->loss(meshes); }).find("vertex 4 does not exist: there are 4"),
            std::string::npos);
  meshes = tetrahedron();
  meshes.face_edges = torch::tensor({{0, 7}}, torch::kInt64).unsqueeze(0);
  EXPECT_NE(refusal([&] { model->loss(meshes); }).find("face 7 does not exist: there are 4"),
            std::string::npos);
  EXPECT_NE(refusal([&] {
              model->decode_from_codes_to_faces(torch::zeros({1, 7}, torch::kInt64));
            }).find("7 codes are not a whole number of faces: each face has 6"),
            std::string::npos);
  auto from = [](const char* text) {
    return refusal([&] { MeshAutoencoderConfig::from_json(text); });
  };
  EXPECT_NE(from(R"({"dim_codebok": 4})").find("no argument dim_codebok"), std::string::npos);
  EXPECT_NE(from(R"({"rq_kwargs": {"quantize_dropout": true}, "num_quantizers": 0})")
                .find("num_quantizers must be positive"),
            std::string::npos);
  EXPECT_NE(from(R"({"local_attn_kwargs": {"causal": true}})").find("no argument causal"),
            std::string::npos);
}

TEST(MeshAutoencoder, ConfigurationComesBackFromJson) {
  MeshAutoencoderConfig config = tiny();
  config.rlfq_kwargs.soft_clamp_input_value.reset();
  config.sageconv_kwargs.aggr = "sum";
  config.local_attn_kwargs.look_backward = 2;
  const std::string text = config.to_json();
  EXPECT_EQ(MeshAutoencoderConfig::from_json(text).to_json(), text);
  EXPECT_EQ(MeshAutoencoderConfig::from_json("{}").to_json(), MeshAutoencoderConfig{}.to_json());
}

// Computed without the distance table (vectors times codes), entropies and gradients are the same.
TEST(Lfq, FactoredEntropiesEqualThoseOfTheTable) {
  for (const std::int64_t bits : {1, 5, 10}) {
    std::vector<torch::Tensor> losses, gradients;
    for (const bool factored : {false, true}) {
      torch::manual_seed(7);
      Lfq quantizer(LfqOptions{.dim = bits,
                               .codebook_scale = 0.5,
                               .channel_first = false,
                               .factored_entropies = factored});
      const torch::Tensor x = (torch::randn({3, 40, bits}) * 0.02).requires_grad_();
      const torch::Tensor counted = torch::rand({3, 40}) < 0.7;
      losses.push_back(quantizer->forward(x, counted).loss);
      losses.back().backward();
      gradients.push_back(x.grad());
    }
    EXPECT_NEAR(losses[0].item<double>(), losses[1].item<double>(), 1e-5) << bits;
    EXPECT_LT((gradients[0] - gradients[1]).norm().item<double>(),
              1e-4 * gradients[0].norm().item<double>())
        << bits;
  }
}

}  // namespace
}  // namespace millrace
