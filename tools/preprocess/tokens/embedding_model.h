// A trained model that embeds sounds and texts into one space, for `preprocess tokens` and
// `search`. The implementation links LibTorch and is in the library millrace_tokenizers.
//
//   auto model = open_embedding_model({.model = "results/mulan.9000.pt"});
//   std::vector<float> embedding(model->dim());
//   model->embed_sound(samples, embedding);             // at model->sample_rate_hz(), one channel
#pragma once

#include "tools/preprocess/tokens/token_model.h"

#include <millrace/decoders/text/tokenizer.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace millrace {

// Thread-safe: immutable after construction. Each call runs on the calling thread only, so that an
// embedding depends on nothing else.
class EmbeddingModel : public TokenModel {
 public:
  const EmbeddingModel* embeddings() const final { return this; }
  virtual std::int64_t dim() const = 0;
  // As in training; 0: not recorded in the file.
  virtual int sample_rate_hz() const = 0;
  virtual std::int64_t samples() const = 0;
  virtual std::int64_t fewest_samples() const = 0;
  virtual std::int64_t max_tokens() const = 0;

  // Fill [dim]; the embedding has length 1.
  virtual void embed_sound(std::span<const float> sound, std::span<float> place) const = 0;
  virtual void embed_text(std::span<const std::int32_t> tokens, std::span<float> place) const = 0;
};

// Returns null if the file holds another kind of model. Throws as open_token_model().
std::shared_ptr<const EmbeddingModel> open_embedding_model(const TokenModelOptions& options);

// Tokenizes a text for the model (bytes, or BPE by a merges file) and embeds it. Throws an Error of
// kind usage if the vocabulary differs from the model's.
class TextEmbedder {
 public:
  TextEmbedder(std::shared_ptr<const EmbeddingModel> model, const std::string& merges);
  void embed(std::string_view text, std::span<float> place) const;
  const std::string& name() const { return name_; }  // of the tokenizer

 private:
  std::shared_ptr<const EmbeddingModel> model_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::string name_;
};

}  // namespace millrace
