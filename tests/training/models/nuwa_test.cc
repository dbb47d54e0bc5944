#include <millrace/pipeline/base/error.h>
#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/nuwa/nuwa.h>

#include <gtest/gtest.h>

namespace millrace {
namespace {

NuwaConfig tiny(bool reversible) {
  return {.dim = 12,
          .vae = {.dim = 8,
                  .image_size = 24,
                  .channels = 1,
                  .num_layers = 3,
                  .attn_dim_head = 4,
                  .attn_heads = 2,
                  .resnet_groups = 4,
                  .use_vgg_and_gan = false,
                  .vq = {.codebook_size = 20, .codebook_dim = 6, .use_cosine_sim = true}},
          .max_video_frames = 3,
          .text_num_tokens = 12,
          .text_max_seq_len = 6,
          .text_enc_depth = 1,
          .text_enc_dim_head = 4,
          .text_enc_heads = 2,
          .enc_reversible = reversible,
          .dec_depth = 2,
          .dec_dim_head = 4,
          .dec_heads = 2,
          .dec_reversible = reversible,
          .sparse_3dna_dilation = {2},
          .sparse_3dna_rel_pos_bias = true};
}

torch::Tensor texts() {
  return torch::tensor({{3, 7, 1, 0}, {5, 0, 0, 0}}, torch::kInt64);
}

// With and without the KV cache. parity_check does not cover correct guidance: it compares with the
// package's, which has a bug.
TEST(Nuwa, RemembersWhatItHasComputed) {
  for (bool reversible : {true, false}) {
    torch::manual_seed(3);
    Nuwa model(tiny(reversible));
    for (std::int64_t frames : {2, 3, 5}) {  // 5 is more than max_video_frames
      NuwaGenerateOptions options{.filter_thres = 1, .cond_scale = 3, .num_frames = frames};
      const torch::Tensor remembered = model->generate_codes(texts(), options);
      options.cached = false;
      EXPECT_TRUE(torch::equal(remembered, model->generate_codes(texts(), options)));
      EXPECT_EQ(remembered.sizes(), (std::vector<std::int64_t>{2, frames, 3, 3}));
    }
    EXPECT_TRUE(model->is_training());
  }
}

TEST(Nuwa, MakesVideosThroughAnyNumberOfLayersAndCodesOfAnySize) {
  Nuwa model(tiny(true));
  const torch::Tensor video = model->generate(texts(), {.num_frames = 2});
  EXPECT_EQ(video.sizes(), (std::vector<std::int64_t>{2, 2, 1, 24, 24}));
}

// Causality: a code does not depend on later codes, in space or in time.
TEST(Nuwa, SeesNoLaterCode) {
  torch::manual_seed(4);
  Nuwa model(tiny(true));
  model->eval();
  const torch::Tensor codes = torch::randint(0, 20, {2, 27}, torch::kInt64);
  const torch::Tensor before = model->logits(texts(), codes);
  for (std::int64_t changed : {0, 8, 13, 26}) {
    torch::Tensor other = codes.clone();
    other.select(1, changed).add_(1).remainder_(20);
    const torch::Tensor apart = (model->logits(texts(), other) - before).abs().amax({0, 2});
    EXPECT_EQ(apart.narrow(0, 0, changed + 1).max().item<float>(), 0) << changed;
    if (changed < 26) {
      EXPECT_GT(apart[changed + 1].item<float>(), 0) << changed;
    }
  }
}

TEST(Nuwa, GivesTheSameFrameByFrame) {
  torch::manual_seed(5);
  Nuwa whole(tiny(true));
  NuwaConfig config = tiny(true);
  config.sparse_3dna_query_num_frames_chunk = 1;
  torch::manual_seed(5);
  Nuwa chunked(config);
  const torch::Tensor codes = torch::randint(0, 20, {2, 27}, torch::kInt64);
  const torch::Tensor a = whole->loss(texts(), codes, {.cond_dropout_prob = 0});
  const torch::Tensor b = chunked->loss(texts(), codes, {.cond_dropout_prob = 0});
  EXPECT_NEAR(a.item<double>(), b.item<double>(), 1e-6);
}

TEST(Nuwa, TakesEmptyTextsAndRefusesLongOnes) {
  Nuwa model(tiny(false));
  const torch::Tensor codes = torch::zeros({1, 27}, torch::kInt64);
  EXPECT_TRUE(model->loss(torch::zeros({1, 3}, torch::kInt64), codes).isfinite().item<bool>());
  EXPECT_TRUE(model->loss(torch::zeros({1, 0}, torch::kInt64), codes).isfinite().item<bool>());
  EXPECT_THROW(model->loss(torch::ones({1, 7}, torch::kInt64), codes), Error);
  EXPECT_THROW(model->loss(texts(), codes), Error);  // one clip, two texts
  EXPECT_THROW(NuwaConfig::from_json(R"({"dim": 8, "vae": {"dim": 16}})"), Error);
}

}  // namespace
}  // namespace millrace
