// Converts text to token ids and back: bytes, or byte-pair encoding with a merges file in CLIP's
// format, with the same ids as the simple tokenizer of the Python packages.
//
//   std::unique_ptr<const Tokenizer> tokenizer;
//   Status status = load_bpe(bytes, {}, tokenizer);  // the content of bpe_simple_vocab_16e6.txt.gz
//   std::vector<std::int32_t> ids(256);
//   std::int64_t valid = 0;
//   if (status.ok()) status = encode_padded(*tokenizer, "a photo of a cat", {}, ids, valid);
#pragma once

#include <millrace/pipeline/base/error.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace millrace {

// Immutable, hence thread-safe.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  // All ids are below this.
  virtual std::int64_t vocabulary() const = 0;
  // Replaces the content of `ids`. Returns an Error only if the text is not UTF-8.
  virtual Status encode(std::string_view text, std::vector<std::int32_t>& ids) const = 0;
  // Leaves out padding at the end and the start and end tokens. Returns an Error for an invalid id.
  virtual Status decode(std::span<const std::int32_t> ids, std::string& text) const = 0;
};

// Every byte is a token with the id value + 1, so that 0 is free for padding. Decoding restores the
// text exactly.
std::unique_ptr<const Tokenizer> byte_tokenizer();

struct BpeOptions {
  // Number of merges to read; CLIP's file has more lines than CLIP uses.
  std::int64_t max_merges = 49'152 - 256 - 2;
  std::int64_t max_bytes = 64'000'000;  // size limit of the decompressed file
};

// Reads a merges file, plain or gzip: a line that is ignored, then two tokens per line. The ids:
// 256 bytes, 256 bytes at the end of a word, the merges in order, <|startoftext|>, <|endoftext|>.
//
// Before it is split into words, a text is cleaned: HTML entities (&amp; &lt; &gt; &quot; &apos;
// &nbsp; and numeric ones) are resolved twice, curly quotes become straight, white space becomes
// one space, and everything is lower-cased. The Python packages also repair wrongly decoded text
// with ftfy; this is not done here.
Status load_bpe(std::span<const std::byte> merges, const BpeOptions& options,
                std::unique_ptr<const Tokenizer>& tokenizer);

struct PaddedOptions {
  bool truncate = true;  // false: a text that is too long is an error
  std::int32_t pad_id = 0;
};

// Fills all of `ids`; `valid` is the number of tokens without padding.
Status encode_padded(const Tokenizer& tokenizer, std::string_view text,
                     const PaddedOptions& options, std::span<std::int32_t> ids,
                     std::int64_t& valid);

}  // namespace millrace
