// The same bytes as a text for a small vocabulary, and as a merges file.
#include <millrace/decoders/text/tokenizer.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace millrace;

std::unique_ptr<const Tokenizer> small_vocabulary() {
  std::string_view merges = "#version\nt h\nth e</w>\na a\naa aa\n' s</w>\n! !\n\u00c3 \u00a9\n";
  std::unique_ptr<const Tokenizer> tokenizer;
  Status status = load_bpe(std::as_bytes(std::span(merges.data(), merges.size())), {}, tokenizer);
  if (!status.ok()) std::abort();
  return tokenizer;
}

void round_trip(const Tokenizer& tokenizer, std::string_view text) {
  static std::vector<std::int32_t> ids;
  static std::string back;
  if (!tokenizer.encode(text, ids).ok()) return;
  for (std::int32_t id : ids) {
    if (id < 0 || id >= tokenizer.vocabulary()) std::abort();
  }
  if (!tokenizer.decode(ids, back).ok()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::unique_ptr<const Tokenizer> small = small_vocabulary();
  std::string_view text(reinterpret_cast<const char*>(data), size);
  round_trip(*small, text);
  round_trip(*byte_tokenizer(), text);
  std::unique_ptr<const Tokenizer> own;
  Status status = load_bpe(std::as_bytes(std::span(data, size)), {.max_bytes = 1'000'000}, own);
  if (status.ok()) round_trip(*own, "the cat's caf\u00e9 &amp; aaaa!!");
  return 0;
}
