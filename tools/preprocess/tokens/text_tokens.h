// Tokenizes the field "text" of a job.
#pragma once

#include "tools/preprocess/job.h"

#include <cstdint>
#include <string>

namespace millrace {

struct TokenizeOptions {
  std::string tokenizer;        // "bytes" or "bpe:FILE"
  std::int64_t max_length = 0;  // 0: lists of any length
  bool no_cut = false;
  std::string dtype;  // empty: the smallest that holds the vocabulary
};

// Parses int32, uint16 ...; throws an Error that lists the names.
DType parse_dtype(const std::string& name);
// The given type, or the smallest that fits; throws if the vocabulary does not fit.
DType token_dtype(const std::string& asked, std::int64_t vocabulary);

// Replaces the field "text" by "tokens" and adds the tokenizer to the job's options.
void tokenize(Job& job, const TokenizeOptions& options);

}  // namespace millrace
