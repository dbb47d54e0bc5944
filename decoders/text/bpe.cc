// Byte-pair encoding with CLIP's vocabulary. A word starts as its bytes, the last one marked as the
// end of a word. Then the pair with the lowest rank in the merges file is merged, again and again.
#include <millrace/decoders/mesh/formats/text_cursor.h>
#include <millrace/decoders/text/clip_pretokenizer.h>
#include <millrace/decoders/text/gunzip.h>
#include <millrace/decoders/text/text.h>
#include <millrace/decoders/text/tokenizer.h>
#include <millrace/decoders/text/unicode.h>

#include <algorithm>
#include <array>
#include <queue>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace millrace {

using namespace detail;

namespace {

constexpr const char* expected =
    "Give the merges of a CLIP-style tokenizer: a first line, then two tokens a line";

constexpr std::string_view word_end = "</w>";

// The files write bytes as printable characters: bytes that are printable in Latin-1 as themselves,
// the others as U+0100 and up. This is also the order of the first 256 ids.
struct ByteAlphabet {
  std::array<std::int32_t, 256> id_of{};
  std::array<char32_t, 256> symbol_of{};

  ByteAlphabet() {
    std::int32_t next = 0;
    auto printable = [](int b) {
      return (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
    };
    for (int b = 0; b < 256; ++b) {
      if (!printable(b)) continue;
      id_of[static_cast<std::size_t>(b)] = next++;
      symbol_of[static_cast<std::size_t>(b)] = static_cast<char32_t>(b);
    }
    for (int b = 0, extra = 0; b < 256; ++b) {
      if (printable(b)) continue;
      id_of[static_cast<std::size_t>(b)] = next++;
      symbol_of[static_cast<std::size_t>(b)] = static_cast<char32_t>(256 + extra++);
    }
  }
};

// Tokens that end inside a character give invalid UTF-8, which is replaced by U+FFFD.
std::string mended(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    std::size_t good = std::min(first_invalid_utf8(bytes), bytes.size());
    text += bytes.substr(0, good);
    bytes.remove_prefix(good);
    if (bytes.empty()) break;
    text += "\xEF\xBF\xBD";
    bytes.remove_prefix(1);
    auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; };
    while (!bytes.empty() && continues(bytes.front())) bytes.remove_prefix(1);
  }
  return text;
}

class BpeTokenizer : public Tokenizer {
 public:
  std::int64_t vocabulary() const override { return static_cast<std::int64_t>(bytes_of_.size()); }

  Status read(std::string_view text, const BpeOptions& options);
  Status encode(std::string_view text, std::vector<std::int32_t>& ids) const override;
  Status decode(std::span<const std::int32_t> ids, std::string& text) const override;

 private:
  struct Merge {
    std::int32_t rank = 0, result = 0;
  };

  static std::uint64_t key(std::int32_t left, std::int32_t right) {
    return static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint32_t>(right);
  }
  const Merge* find_merge(std::int32_t left, std::int32_t right) const {
    auto it = merges_.find(key(left, right));
    return it == merges_.end() ? nullptr : &it->second;
  }
  void add_bytes();
  void encode_word(std::string_view word, std::vector<std::int32_t>& ids) const;

  ByteAlphabet alphabet_;
  std::unordered_map<std::string, std::int32_t> id_of_;  // by the file's spelling
  std::vector<std::string> bytes_of_;                    // the bytes of a token, with word_end
  std::unordered_map<std::uint64_t, Merge> merges_;
  std::int32_t start_ = 0, end_ = 0;
};

void BpeTokenizer::add_bytes() {
  bytes_of_.resize(512);
  for (std::size_t b = 0; b < 256; ++b) {
    std::string spelling;
    append_utf8(spelling, alphabet_.symbol_of[b]);
    auto id = static_cast<std::size_t>(alphabet_.id_of[b]);
    bytes_of_[id] = std::string(1, static_cast<char>(b));
    bytes_of_[id + 256] = bytes_of_[id] + std::string(word_end);
    id_of_[spelling] = static_cast<std::int32_t>(id);
    id_of_[spelling + std::string(word_end)] = static_cast<std::int32_t>(id + 256);
  }
}

Status BpeTokenizer::read(std::string_view text, const BpeOptions& options) {
  add_bytes();
  TextCursor in(text);
  in.skip_line();  // the version
  std::vector<std::pair<std::string, std::string>> pairs;
  while (!in.done() && static_cast<std::int64_t>(pairs.size()) < options.max_merges) {
    std::string left(in.word()), right(in.word());
    bool more = !in.word().empty();
    if (!left.empty() || more) {
      if (right.empty() || more || !id_of_.contains(left) || !id_of_.contains(right)) {
        return Error("line " + std::to_string(in.line_number()) +
                     ": a merge needs two tokens that are known by then")
            .stage("bpe")
            .hint(expected);
      }
      // The later of two equal spellings is used, as in a Python dict.
      id_of_[left + right] = static_cast<std::int32_t>(bytes_of_.size());
      std::string bytes = bytes_of_[static_cast<std::size_t>(id_of_[left])];
      bytes += bytes_of_[static_cast<std::size_t>(id_of_[right])];
      bytes_of_.push_back(std::move(bytes));
      pairs.emplace_back(std::move(left), std::move(right));
    }
    in.skip_line();
  }
  if (pairs.empty()) return Error("no merges").stage("bpe").hint(expected);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const auto& [left, right] = pairs[i];
    merges_[key(id_of_[left], id_of_[right])] = {static_cast<std::int32_t>(i),
                                                 id_of_[left + right]};
  }
  start_ = static_cast<std::int32_t>(bytes_of_.size());
  end_ = start_ + 1;
  bytes_of_.insert(bytes_of_.end(), {"<|startoftext|>", "<|endoftext|>"});
  id_of_.clear();
  return {};
}

Status BpeTokenizer::encode(std::string_view text, std::vector<std::int32_t>& ids) const {
  std::size_t invalid = first_invalid_utf8(text);
  if (invalid != std::string_view::npos) {
    return Error("not UTF-8 at byte " + std::to_string(invalid)).stage("tokenizer");
  }
  ids.clear();
  for (const std::string& word : split_caption(clean_caption(text))) {
    if (word == "<|startoftext|>") {
      ids.push_back(start_);
    } else if (word == "<|endoftext|>") {
      ids.push_back(end_);
    } else {
      encode_word(word, ids);
    }
  }
  return {};
}

// The tokens are a linked list, and a priority queue holds the pairs that can be merged, lowest
// rank first. All occurrences of a pair are merged from left to right before new pairs are
// considered. So a word of n bytes takes O(n log n) instead of O(n^2).
void BpeTokenizer::encode_word(std::string_view word, std::vector<std::int32_t>& ids) const {
  struct Token {
    std::int32_t id, previous, next;
  };
  auto size = static_cast<std::int32_t>(word.size());
  std::vector<Token> tokens(word.size());
  for (std::int32_t i = 0; i < size; ++i) {
    auto at = static_cast<std::size_t>(i);
    tokens[at] = {alphabet_.id_of[static_cast<unsigned char>(word[at])], i - 1,
                  i + 1 < size ? i + 1 : -1};
  }
  tokens.back().id += 256;

  using Candidate = std::tuple<std::int32_t, std::int32_t>;  // rank, index of the left token
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
  auto token = [&](std::int32_t i) -> Token& { return tokens[static_cast<std::size_t>(i)]; };
  auto merge_at = [&](std::int32_t left) -> const Merge* {
    if (left < 0 || token(left).id < 0 || token(left).next < 0) return nullptr;
    return find_merge(token(left).id, token(token(left).next).id);
  };
  auto offer = [&](std::int32_t left) {
    if (const Merge* merge = merge_at(left)) queue.emplace(merge->rank, left);
  };
  for (std::int32_t i = 0; i < size; ++i) offer(i);
  std::vector<std::int32_t> merged;
  while (!queue.empty()) {
    std::int32_t rank = std::get<0>(queue.top());
    merged.clear();
    for (; !queue.empty() && std::get<0>(queue.top()) == rank; queue.pop()) {
      std::int32_t left = std::get<1>(queue.top());
      const Merge* merge = merge_at(left);
      if (merge == nullptr || merge->rank != rank) continue;  // outdated by another merge
      std::int32_t right = token(left).next;
      token(left).id = merge->result;
      token(left).next = token(right).next;
      if (token(right).next >= 0) token(token(right).next).previous = left;
      token(right).id = -1;
      merged.push_back(left);
    }
    for (std::int32_t left : merged) {
      offer(left);
      offer(token(left).previous);
    }
  }
  for (std::int32_t i = 0; i >= 0; i = token(i).next) ids.push_back(token(i).id);
}

Status BpeTokenizer::decode(std::span<const std::int32_t> ids, std::string& text) const {
  text.clear();
  while (!ids.empty() && ids.back() == 0) ids = ids.first(ids.size() - 1);
  for (std::int32_t id : ids) {
    if (id < 0 || id >= vocabulary()) {
      return Error("token " + std::to_string(id) + " is not one of " + std::to_string(vocabulary()))
          .stage("tokenizer");
    }
    if (id == start_ || id == end_) continue;
    std::string_view bytes = bytes_of_[static_cast<std::size_t>(id)];
    bool ends = bytes.ends_with(word_end);
    text += ends ? bytes.substr(0, bytes.size() - word_end.size()) : bytes;
    if (ends) text += ' ';
  }
  if (text.ends_with(' ')) text.pop_back();
  text = mended(text);
  return {};
}

}  // namespace

Status load_bpe(std::span<const std::byte> merges, const BpeOptions& options,
                std::unique_ptr<const Tokenizer>& tokenizer) {
  std::string unpacked;
  std::string_view text(reinterpret_cast<const char*>(merges.data()), merges.size());
  if (is_gzip(merges)) {
    if (Status status = gunzip(merges, options.max_bytes, unpacked); !status.ok()) return status;
    text = unpacked;
  }
  if (text.empty()) return Error("the file is empty").stage("bpe").hint(expected);
  if (static_cast<std::int64_t>(text.size()) > options.max_bytes) {
    return Error("more than the " + std::to_string(options.max_bytes) + " bytes allowed")
        .stage("bpe")
        .hint("Raise BpeOptions::max_bytes if you trust the file");
  }
  if (first_invalid_utf8(text) != std::string_view::npos) {
    return Error("not a merges file: it is not UTF-8").stage("bpe").hint(expected);
  }
  auto bpe = std::make_unique<BpeTokenizer>();
  if (Status status = bpe->read(text, options); !status.ok()) return status;
  tokenizer = std::move(bpe);
  return {};
}

}  // namespace millrace
