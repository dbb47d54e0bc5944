// MeshGPT's transformer: writes a mesh as the codes of its autoencoder, face by face, with or
// without a text that it is to show. A coarse decoder goes from face to face, a fine one over the
// codes within a face. Tensors have the names of meshgpt-pytorch 1.2.2.
//
//   MeshTransformer model(MeshTransformerConfig{.codebook_size = 1024, .dim = 128});
//   model->loss(codes).backward();                       // int64 [batch, length], padded with -1
//   torch::Tensor made = model->generate({.temperature = 0});
#pragma once

#include <millrace/training/models/mesh_transformer/mesh_transformer_config.h>
#include <millrace/training/models/module/random_source.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <torch/nn/module.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

namespace millrace {

class DecoderLayers;
class GateLoopBlock;
class TextEncoder;

enum class CodeFilter : std::uint8_t { none, top_k, top_p };

struct MeshGenerateOptions {
  torch::Tensor prompt{};       // [batch, length] codes to go on from, or undefined
  std::int64_t batch_size = 0;  // 0: that of the prompt, or of the texts, or 1
  CodeFilter filter = CodeFilter::top_k;
  double top_k_share = 0.1;  // top_k keeps this share of all codes, or the best `k` of them
  std::int64_t k = 0;
  double top_p = 0.9;                   // top_p keeps the likeliest codes until they have so much
  double temperature = 1;               // 0: the likeliest code
  torch::Tensor text_embeds{};          // [batch, words, dim_text]; rows of zeros do not count
  double cond_scale = 1;                // above 1: more of what the text makes likelier
  bool cache_kv = true;                 // false: everything again for every code, as a check
  std::int64_t max_seq_len = 0;         // 0: the model's
  std::optional<std::uint64_t> seed{};  // of what is drawn; else torch's generator goes on
  std::function<bool(std::int64_t)> on_code{};  // told of each length; false ends it there
};

class MeshTransformerImpl : public torch::nn::Module {
 public:
  // `autoencoder`, if given, stands under its name in the state, and is never trained.
  explicit MeshTransformerImpl(const MeshTransformerConfig& config,
                               const std::shared_ptr<torch::nn::Module>& autoencoder = nullptr);
  ~MeshTransformerImpl() override;

  const MeshTransformerConfig& config() const { return config_; }
  // Those that are trained, in the order in which optimizers in Python have them.
  std::vector<torch::Tensor> trained_parameters() const;
  void set_draws(std::shared_ptr<Draws> draws) { draws_ = std::move(draws); }

  // The mean cross entropy of every code and of the end of each mesh. `codes` [batch, length] (or
  // with more dimensions, flattened), padded with pad_id. Texts are dropped at random in training.
  torch::Tensor loss(const torch::Tensor& codes, const torch::Tensor& text_embeds = {});
  // Of what may follow each of the codes, and of the first: [batch, length + 1, codebook_size + 1].
  torch::Tensor logits(const torch::Tensor& codes, const torch::Tensor& text_embeds = {},
                       double cond_scale = 1);
  // Meshes until each has ended: [batch, length] codes, after a mesh's end pad_id.
  torch::Tensor generate(const MeshGenerateOptions& options = {});
  // By the text encoder inside: [texts, words, dim_text]. Throws an Error if there is none.
  torch::Tensor embed_texts(const std::vector<std::string>& texts);

 private:
  struct Text;   // what a batch is conditioned on
  struct State;  // what was seen while a mesh is generated

  torch::Tensor flattened(const torch::Tensor& codes) const;
  Text text_of(const torch::Tensor& text_embeds, std::int64_t batch, double drop);
  torch::Tensor embedded(const torch::Tensor& codes, std::int64_t first) const;
  torch::Tensor first_token(const Text& text, std::int64_t batch);
  torch::Tensor face_tokens(const torch::Tensor& embedded_codes);
  torch::Tensor fine_tokens(const torch::Tensor& codes, const Text& text, State* state);
  torch::Tensor all_logits(const torch::Tensor& codes, const Text& text);
  torch::Tensor packed_loss(const torch::Tensor& codes, const torch::Tensor& lengths,
                            const Text& text);
  torch::Tensor first_logits(const torch::Tensor& codes, const Text& text, State& state);
  torch::Tensor next_logits(const torch::Tensor& codes, const Text& text, State& state);
  // Of what follows the last code; without a state everything is computed again.
  torch::Tensor last_logits(const torch::Tensor& codes, const Text& text, State* state);

  MeshTransformerConfig config_;
  std::shared_ptr<Draws> draws_ = std::make_shared<Draws>();
  torch::Tensor sos_token_, quantize_level_embed_, vertex_embed_;
  torch::nn::Embedding token_embed_{nullptr}, abs_pos_emb_{nullptr};
  torch::nn::Linear to_latent_{nullptr}, to_sos_text_cond_{nullptr}, face_projection_{nullptr};
  torch::nn::Linear to_logits_{nullptr};
  torch::nn::LayerNorm face_norm_{nullptr};
  std::shared_ptr<GateLoopBlock> coarse_gateloop_, fine_gateloop_;
  std::shared_ptr<DecoderLayers> decoder_, fine_decoder_;
  std::shared_ptr<TextEncoder> text_encoder_;
};
TORCH_MODULE(MeshTransformer);

}  // namespace millrace
