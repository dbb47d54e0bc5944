// MeshGPT's transformer: generates meshes as codes of the mesh autoencoder, face by face,
// optionally conditioned on text. A coarse decoder runs over faces, a fine decoder over the codes
// of a face. Parameter names are those of meshgpt-pytorch 1.2.2.
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
  torch::Tensor prompt{};       // [batch, length] codes to continue, or undefined
  std::int64_t batch_size = 0;  // 0: rows of the prompt, or of the texts, or 1
  CodeFilter filter = CodeFilter::top_k;
  // The filter top_k keeps this fraction of the codes, or the best `k` if k is above 0.
  double top_k_share = 0.1;
  std::int64_t k = 0;
  double top_p = 0.9;      // top_p keeps the most likely codes until their probability exceeds this
  double temperature = 1;  // 0: always the most likely code
  torch::Tensor text_embeds{};   // [batch, words, dim_text]; rows of zeros are padding
  double cond_scale = 1;         // guidance scale; 1 disables guidance
  bool cache_kv = true;          // false: recompute the whole prefix for every code (for tests)
  std::int64_t max_seq_len = 0;  // 0: the model's max_seq_len
  std::optional<std::uint64_t> seed{};  // of sampling; default: torch's global generator
  // Called with the length after each code; generation stops if it returns false.
  std::function<bool(std::int64_t)> on_code{};
};

class MeshTransformerImpl : public torch::nn::Module {
 public:
  // `autoencoder`, if given, is registered as "autoencoder" and frozen.
  explicit MeshTransformerImpl(const MeshTransformerConfig& config,
                               const std::shared_ptr<torch::nn::Module>& autoencoder = nullptr);
  ~MeshTransformerImpl() override;

  const MeshTransformerConfig& config() const { return config_; }
  // In the order of the Python optimizers' parameters.
  std::vector<torch::Tensor> trained_parameters() const;
  void set_draws(std::shared_ptr<Draws> draws) { draws_ = std::move(draws); }

  // Mean cross entropy of all codes and of the end of each mesh. `codes`: [batch, length], padded
  // with pad_id; further dimensions are flattened. In training, texts are dropped at random.
  torch::Tensor loss(const torch::Tensor& codes, const torch::Tensor& text_embeds = {});
  // Logits for each code and for the code after the last: [batch, length + 1, codebook_size + 1].
  torch::Tensor logits(const torch::Tensor& codes, const torch::Tensor& text_embeds = {},
                       double cond_scale = 1);
  // Generates until all meshes have ended. Returns [batch, length] codes, padded with pad_id.
  torch::Tensor generate(const MeshGenerateOptions& options = {});
  // Embeds texts with the model's text encoder: [texts, words, dim_text]. Throws an Error if there
  // is none.
  torch::Tensor embed_texts(const std::vector<std::string>& texts);

 private:
  struct Text;   // text condition of a batch
  struct State;  // KV caches and recurrent states of a generation

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
  // Logits for the next code. Without a KV cache (`state` is null) the whole prefix is recomputed.
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
