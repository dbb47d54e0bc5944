// MuLaN as an EmbeddingModel. Private to the library millrace_tokenizers.
#pragma once

#include "tools/preprocess/tokens/token_model.h"

#include <millrace/training/checkpoint/value.h>

#include <memory>

namespace millrace {

std::shared_ptr<const TokenModel> open_mulan(const Value& saved, const TokenModelOptions& options);

}  // namespace millrace
