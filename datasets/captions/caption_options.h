// Texts beside media: how they become fields of a sample.
#pragma once

#include <millrace/decoders/text/tokenizer.h>

#include <cstdint>
#include <memory>

namespace millrace {

// For data sets that can do without a text.
enum class TextBeside {
  none,      // texts are not looked for
  optional,  // a file without one has an empty caption
  required,  // a file without one is left out, and said so
};

struct CaptionOptions {
  // With one, samples also have "tokens" int64: the ids of the caption.
  std::shared_ptr<const Tokenizer> tokenizer{};
  std::int64_t max_tokens = 256;
  bool truncate = true;  // otherwise a caption of more tokens is an error of its sample
  bool pad = false;      // tokens is [max_tokens], filled with pad_id; otherwise as long as it is
  std::int32_t pad_id = 0;
  std::int64_t max_bytes = 1 << 20;  // of a text file
};

}  // namespace millrace
