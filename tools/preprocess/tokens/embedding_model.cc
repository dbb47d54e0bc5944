#include "tools/preprocess/tokens/embedding_model.h"

#include <millrace/datasets/listing/mapped_file.h>
#include <millrace/pipeline/base/error.h>

#include <algorithm>

#include <fmt/format.h>
#include <xxhash.h>

namespace millrace {

std::shared_ptr<const EmbeddingModel> open_embedding_model(const TokenModelOptions& options) {
  const std::shared_ptr<const TokenModel> model = open_token_model(options);
  return {model, model->embeddings()};
}

TextEmbedder::TextEmbedder(std::shared_ptr<const EmbeddingModel> model, const std::string& merges)
    : model_(std::move(model)), tokenizer_(byte_tokenizer()), name_("bytes") {
  if (!merges.empty()) {
    const MappedFile file(merges);
    std::unique_ptr<const Tokenizer> made;
    if (Status status = load_bpe(file.bytes(), {}, made); !status.ok()) {
      throw status.error().at(merges).kind(ErrorKind::usage);
    }
    tokenizer_ = std::move(made);
    name_ = fmt::format("bpe, merges xxh3:{:016x}", XXH3_64bits(file.bytes().data(), file.size()));
  }
  if (tokenizer_->vocabulary() <= model_->vocabulary()) return;
  throw Error(fmt::format("the tokenizer has {} tokens, but the model was trained with {}",
                          tokenizer_->vocabulary(), model_->vocabulary()))
      .kind(ErrorKind::usage)
      .hint("Give the merges file of its training: --bpe FILE; without, every byte is a token");
}

void TextEmbedder::embed(std::string_view text, std::span<float> place) const {
  while (!text.empty() && std::string_view(" \t\n\v\f\r").find(text.back()) != text.npos) {
    text.remove_suffix(1);  // as for captions in training
  }
  std::vector<std::int32_t> ids;
  if (Status status = tokenizer_->encode(text, ids); !status.ok()) throw status.error();
  ids.resize(std::min(ids.size(), static_cast<std::size_t>(model_->max_tokens())));
  model_->embed_text(ids, place);
}

}  // namespace millrace
