// Turns the field "text" of a job into token ids.
#pragma once

#include "tools/preprocess/job.h"

#include <cstdint>
#include <string>

namespace millrace {

struct TokenizeOptions {
  std::string tokenizer;        // "bytes" or "bpe:FILE"
  std::int64_t max_length = 0;  // 0: lists, as long as each text is
  bool no_cut = false;
  std::string dtype;  // empty: the smallest that holds the vocabulary
};

// int32, uint16 ...; throws an error that lists the names there are.
DType parse_dtype(const std::string& name);
// The type that was asked for, or the smallest; throws if the vocabulary does not fit.
DType token_dtype(const std::string& asked, std::int64_t vocabulary);

// The field "text" becomes "tokens"; what decides them goes into the job's options.
void tokenize(Job& job, const TokenizeOptions& options);

}  // namespace millrace
