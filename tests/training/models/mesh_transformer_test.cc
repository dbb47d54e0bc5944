// Tests the mesh transformer's loss, generation and texts. tests/parity compares it with the Python
// package.
#include "tests/reference.h"

#include <millrace/pipeline/base/error.h>
#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/mesh_transformer/mesh_transformer.h>
#include <millrace/training/models/module/module_tensors.h>

#include <set>
#include <string>

namespace millrace {
namespace {

MeshTransformerConfig small(bool texts = false) {
  MeshTransformerConfig config{.codebook_size = 10,
                               .dim = 16,
                               .max_seq_len = 60,
                               .attn_depth = 1,
                               .attn_dim_head = 8,
                               .attn_heads = 2,
                               .coarse_pre_gateloop_depth = 1,
                               .fine_pre_gateloop_depth = 1,
                               .fine_attn_depth = 1};
  if (!texts) return config;
  config.condition_on_text = true;
  config.dim_text = 12;
  config.text_encoder = TextEncoderConfig{.depth = 1, .heads = 2, .dim_head = 4, .max_bytes = 20};
  return config;
}

std::string refusal(const std::string& json) {
  try {
    MeshTransformerConfig::from_json(json);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(MeshTransformer, RefusesWhatCannotBe) {
  EXPECT_NE(refusal(R"({"max_seq_len": 8192})").find("multiple of 6"), std::string::npos);
  EXPECT_NE(refusal(R"({"dims": 8})").find("no argument dims"), std::string::npos);
  EXPECT_NE(refusal(R"({"attn_kwargs": {"macaron": true}})").find("macaron"), std::string::npos);
  EXPECT_NE(refusal(R"({"dim": [8, 16]})").find("dim must be one number"), std::string::npos);
  EXPECT_NE(refusal(R"({"attn_dim_head": 16, "attn_kwargs": {"rotary_pos_emb": true}})").find("32"),
            std::string::npos);
}

TEST(MeshTransformer, ItsConfigurationComesBack) {
  MeshTransformerConfig config = small(true);
  config.autoencoder = R"({"codebook_size":10})";
  config.attn_kwargs.attn_kv_heads = 1;
  EXPECT_EQ(MeshTransformerConfig::from_json(config.to_json()).to_json(), config.to_json());
}

// Padding does not count: the loss of a batch is the mean over the labels of its meshes alone.
TEST(MeshTransformer, WhatFillsAMeshUpDoesNotCount) {
  torch::manual_seed(1);
  MeshTransformer model(small());
  const std::vector<torch::Tensor> meshes = {
      torch::randint(10, {1, 12}), torch::randint(10, {1, 30}), torch::randint(10, {1, 6})};
  double sum = 0;
  std::int64_t labels = 0;
  std::vector<torch::Tensor> rows;
  for (const torch::Tensor& mesh : meshes) {
    const std::int64_t count = mesh.size(1) + 1;
    sum += model->loss(mesh).item<double>() * static_cast<double>(count);
    labels += count;
    rows.push_back(torch::pad(mesh, {0, 42 - mesh.size(1)}, "constant", -1));
  }
  const double together = model->loss(torch::cat(rows)).item<double>();
  EXPECT_NEAR(together, sum / static_cast<double>(labels), 1e-5);
}

TEST(MeshTransformer, NamesAMeshThatIsTooLong) {
  MeshTransformer model(small());
  try {
    model->loss(torch::zeros({1, 66}, torch::kInt64));
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("66 codes (11 faces)"), std::string::npos);
  }
}

TEST(MeshTransformer, EndsMeshesAfterWholeFacesOnly) {
  torch::manual_seed(2);
  MeshTransformer model(small());
  {  // the end token always has the highest probability
    torch::NoGradGuard no_grad;
    model->named_parameters()["to_logits.bias"][10] = 100;
  }
  const torch::Tensor made = model->generate({.batch_size = 3});
  EXPECT_EQ(made.sizes(), (std::vector<std::int64_t>{3, 6}));
  EXPECT_TRUE(model->is_training());  // generate() restores the mode
  EXPECT_TRUE(((made >= 0) & (made < 10)).all().item<bool>());
}

TEST(MeshTransformer, DrawsFromTheLikeliestAndBySeed) {
  torch::manual_seed(3);
  MeshTransformer model(small());
  MeshGenerateOptions options{.batch_size = 2, .max_seq_len = 30, .seed = 5};
  options.filter = CodeFilter::none;
  const torch::Tensor first = model->generate(options);
  EXPECT_TRUE(torch::equal(model->generate(options), first));
  options.cache_kv = false;
  EXPECT_TRUE(torch::equal(model->generate(options), first));
  options.seed = 6;
  EXPECT_FALSE(torch::equal(model->generate(options), first));
  // With a single candidate code, both filters are greedy.
  const torch::Tensor greedy =
      model->generate({.batch_size = 2, .temperature = 0, .max_seq_len = 30});
  EXPECT_TRUE(torch::equal(
      model->generate({.batch_size = 2, .k = 1, .temperature = 2, .max_seq_len = 30}), greedy));
  EXPECT_TRUE(torch::equal(model->generate({.batch_size = 2,
                                            .filter = CodeFilter::top_p,
                                            .top_p = 1e-6,
                                            .temperature = 2,
                                            .max_seq_len = 30}),
                           greedy));
}

TEST(MeshTransformer, TurnedPositionsCanBeginWithNothing) {
  torch::manual_seed(4);
  MeshTransformerConfig config = small();
  config.attn_dim_head = 32;
  config.attn_kwargs.rotary_pos_emb = true;
  MeshTransformer model(config);
  const MeshGenerateOptions cached{.batch_size = 2, .temperature = 0};
  MeshGenerateOptions plain = cached;
  plain.cache_kv = false;
  EXPECT_TRUE(torch::equal(model->generate(cached), model->generate(plain)));
}

TEST(MeshTransformer, ItsTextsAreBytesAndAreLearnt) {
  torch::manual_seed(5);
  MeshTransformer model(small(true));
  const torch::Tensor texts =
      model->embed_texts({"a chair", "", "a table that is too long for it"});
  EXPECT_EQ(texts.sizes(), (std::vector<std::int64_t>{3, 20, 12}));
  EXPECT_FALSE(texts[1].any().item<bool>());              // an empty text
  EXPECT_FALSE(texts[0].slice(0, 7).any().item<bool>());  // padding after the last byte
  model->eval();
  const torch::Tensor codes = torch::randint(10, {3, 12});
  const torch::Tensor loss = model->loss(codes, texts);
  loss.backward();
  for (const auto& item : model->named_parameters()) {
    if (!item.key().starts_with("text_encoder.")) continue;
    EXPECT_TRUE(item.value().grad().defined()) << item.key();
  }
  torch::NoGradGuard no_grad;
  const torch::Tensor others = model->embed_texts({"a lamp", "", "a cup"});
  const torch::Tensor change = (model->logits(codes, others) - model->logits(codes, texts)).abs();
  EXPECT_GT(change[0].max().item<double>(), 1e-4);
  EXPECT_LT(change[1].max().item<double>(), 1e-6);
}

TEST(MeshTransformer, DropsTextsInTrainingAlone) {
  torch::manual_seed(6);
  MeshTransformerConfig config = small(true);
  config.text_condition_cond_drop_prob = 1;
  MeshTransformer model(config);
  torch::NoGradGuard no_grad;
  const torch::Tensor codes = torch::randint(10, {1, 12});
  auto loss_of = [&](const std::string& text) {
    return model->loss(codes, model->embed_texts({text})).item<double>();
  };
  EXPECT_EQ(loss_of("a chair"), loss_of("a cup"));
  model->eval();
  EXPECT_NE(loss_of("a chair"), loss_of("a cup"));
}

}  // namespace
}  // namespace millrace
