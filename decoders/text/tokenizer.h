// Text to token ids and back, behind one interface: bytes, or byte-pair encoding from a merges file
// in CLIP's format, with the ids that the Python packages' simple tokenizer gives.
//
//   std::unique_ptr<const Tokenizer> tokenizer;
//   Status status = load_bpe(merges_file_bytes, {}, tokenizer);
//   std::vector<std::int32_t> ids(256);
//   std::int64_t valid = 0;
//   status = encode_padded(*tokenizer, "a photo of a cat", {}, ids, valid);
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

// Thread-safe: nothing changes once it is made.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  // All ids are below this.
  virtual std::int64_t vocabulary() const = 0;
  // Fails only on text that is not UTF-8. Replaces what is in `ids`.
  virtual Status encode(std::string_view text, std::vector<std::int32_t>& ids) const = 0;
  // Leaves out padding at the end and the marks of start and end. Fails on an id that is none.
  virtual Status decode(std::span<const std::int32_t> ids, std::string& text) const = 0;
};

// Every byte is a token: its value and 1, so that 0 is free for padding. Text comes back as it was.
std::unique_ptr<const Tokenizer> byte_tokenizer();

struct BpeOptions {
  // Lines beyond these many are not used; CLIP's own file has more than CLIP takes of it.
  std::int64_t max_merges = 49'152 - 256 - 2;
  std::int64_t max_bytes = 64'000'000;  // of the file, unpacked
};

// From a merges file, plain or gzip: a line that is passed over, then two tokens a line. The ids:
// 256 bytes, 256 bytes that end a word, the merges in order, <|startoftext|>, <|endoftext|>.
//
// Before it is cut into words a text is cleaned: HTML entities (&amp; &lt; &gt; &quot; &apos;
// &nbsp; and numbers) are resolved twice, curly quotes made straight, white space made one space,
// and all of it lower-cased. The Python packages also mend wrongly decoded text with ftfy; that is
// not done here.
Status load_bpe(std::span<const std::byte> merges, const BpeOptions& options,
                std::unique_ptr<const Tokenizer>& tokenizer);

struct PaddedOptions {
  bool truncate = true;  // otherwise a text that is too long is an error
  std::int32_t pad_id = 0;
};

// Fills all of `ids`; `valid` says how many are tokens and not padding.
Status encode_padded(const Tokenizer& tokenizer, std::string_view text,
                     const PaddedOptions& options, std::span<std::int32_t> ids,
                     std::int64_t& valid);

}  // namespace millrace
