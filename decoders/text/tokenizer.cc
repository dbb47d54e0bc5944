#include <millrace/decoders/text/text.h>
#include <millrace/decoders/text/tokenizer.h>

#include <algorithm>

namespace millrace {

namespace {

class ByteTokenizer : public Tokenizer {
 public:
  std::int64_t vocabulary() const override { return 257; }

  Status encode(std::string_view text, std::vector<std::int32_t>& ids) const override {
    std::size_t invalid = first_invalid_utf8(text);
    if (invalid != std::string_view::npos) {
      return Error("not UTF-8 at byte " + std::to_string(invalid)).stage("tokenizer");
    }
    ids.resize(text.size());
    std::transform(text.begin(), text.end(), ids.begin(),
                   [](char c) { return static_cast<unsigned char>(c) + 1; });
    return {};
  }

  Status decode(std::span<const std::int32_t> ids, std::string& text) const override {
    text.clear();
    for (std::int32_t id : ids) {
      if (id < 0 || id > 256) {
        return Error("token " + std::to_string(id) + " is not one of 257").stage("tokenizer");
      }
      if (id > 0) text += static_cast<char>(id - 1);
    }
    return {};
  }
};

}  // namespace

std::unique_ptr<const Tokenizer> byte_tokenizer() {
  return std::make_unique<ByteTokenizer>();
}

Status encode_padded(const Tokenizer& tokenizer, std::string_view text,
                     const PaddedOptions& options, std::span<std::int32_t> ids,
                     std::int64_t& valid) {
  std::vector<std::int32_t> all;
  if (Status status = tokenizer.encode(text, all); !status.ok()) return status;
  if (all.size() > ids.size() && !options.truncate) {
    return Error("the text has " + std::to_string(all.size()) + " tokens, more than the " +
                 std::to_string(ids.size()) + " allowed")
        .stage("tokenizer")
        .hint("Allow more, or set truncate");
  }
  std::size_t kept = std::min(all.size(), ids.size());
  std::copy_n(all.begin(), kept, ids.begin());
  std::fill(ids.begin() + static_cast<std::ptrdiff_t>(kept), ids.end(), options.pad_id);
  valid = static_cast<std::int64_t>(kept);
  return {};
}

}  // namespace millrace
