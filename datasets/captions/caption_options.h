// Options for captions: how texts become fields of a sample.
//
//   CaptionOptions captions{.tokenizer = byte_tokenizer(), .max_tokens = 77, .pad = true};
#pragma once

#include <millrace/decoders/text/tokenizer.h>

#include <cstdint>
#include <memory>

namespace millrace {

// Whether files need a text file of the same name beside them (a.wav and a.txt).
enum class TextBeside {
  none,      // text files are ignored
  optional,  // a file without a text has an empty caption
  required,  // a file without a text is in left_out(), and in the log
};

struct CaptionOptions {
  // Adds the field "tokens" int64, the token ids of the caption; null: no field "tokens".
  std::shared_ptr<const Tokenizer> tokenizer{};
  std::int64_t max_tokens = 256;
  bool truncate = true;  // false: a longer caption is an error of its sample
  bool pad = false;      // true: tokens is [max_tokens], padded with pad_id; false: [-1]
  std::int32_t pad_id = 0;
  std::int64_t max_bytes = 1 << 20;  // size limit of a text file
};

}  // namespace millrace
