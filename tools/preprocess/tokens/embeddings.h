// `preprocess tokens` with a model such as MuLaN: embeddings of sounds and texts.
#pragma once

#include "tools/preprocess/job.h"
#include "tools/preprocess/tokens/embedding_model.h"

#include <memory>
#include <string>

namespace millrace {

struct EmbeddingOptions {
  double seconds = 0;  // of each sound, from its start; 0: as in training, or whole sounds
  int rate = 0;        // 0: as in training
  std::string table, bpe;
};

void declare_embeddings(const Options& options, EmbeddingOptions& values);

// `medium`: "audio", "text", or "auto". A row has "embedding", float32 [dim], and "caption", a text
// that may be empty.
Job embeddings_job(const std::string& input, const std::string& medium,
                   const std::shared_ptr<const EmbeddingModel>& model,
                   const EmbeddingOptions& options, const std::shared_ptr<Pool>& pool);

}  // namespace millrace
