#include "tests/decoders/mesh/mesh_helpers.h"
#include "tests/reference.h"

#include <millrace/decoders/text/tokenizer.h>
#include <millrace/decoders/text/unicode.h>

#include <chrono>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace millrace {
namespace {

std::unique_ptr<const Tokenizer> load(const std::string& bytes, std::string* message = nullptr) {
  std::unique_ptr<const Tokenizer> tokenizer;
  Status status = load_bpe(std::as_bytes(std::span(bytes)), {}, tokenizer);
  if (message != nullptr) *message = status.ok() ? "ok" : status.error().what();
  return tokenizer;
}

const std::string small_merges = "#version\nc a\nca t</w>\nd o\ndo g</w>\n";

std::vector<std::int32_t> encoded(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<std::int32_t> ids;
  Status status = tokenizer.encode(text, ids);
  EXPECT_TRUE(status.ok()) << status.error().what();
  return ids;
}

// CLIP's tokenizer written anew from its description, with the merges file of the x-clip package.
// Prints the texts, then for each its ids.
constexpr const char* reference = R"py(
import sys, html, gzip, random, re, unicodedata, importlib.util, os
folder = sys.argv[1]
path = os.path.join(importlib.util.find_spec('x_clip').submodule_search_locations[0], 'data/bpe_simple_vocab_16e6.txt')
raw = open(path, 'rb').read()
open(folder + '/merges.txt', 'wb').write(raw)
gzip.open(folder + '/merges.txt.gz', 'wb').write(raw)
printable = [*range(33, 127), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
symbol = {b: chr(b) for b in printable}
symbol.update({b: chr(256 + i) for i, b in enumerate(b for b in range(256) if b not in symbol)})
merges = [tuple(l.split()) for l in raw.decode().split('\n')[1:49152 - 256 - 2 + 1]]
vocab = list(symbol.values()); vocab += [v + '</w>' for v in vocab]
vocab += [''.join(m) for m in merges] + ['<|startoftext|>', '<|endoftext|>']
ids = {v: i for i, v in enumerate(vocab)}; ranks = {m: i for i, m in enumerate(merges)}

def words(text):
    kind = lambda c: ' ' if re.match(r'\s', c) else unicodedata.category(c)[0] if unicodedata.category(c)[0] in 'LN' else 'x'
    i = 0
    while i < len(text):
        m = re.match(r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d", text[i:])
        if m: n = m.end()
        elif kind(text[i]) == ' ': i += 1; continue
        elif kind(text[i]) == 'N': n = 1
        else:
            n = 1
            while i + n < len(text) and kind(text[i + n]) == kind(text[i]): n += 1
        yield text[i:i + n]; i += n

def bpe(word):
    parts = [symbol[b] for b in word.encode()]
    parts[-1] += '</w>'
    while len(parts) > 1:
        best = min(zip(parts, parts[1:]), key=lambda p: ranks.get(p, 1 << 60))
        if best not in ranks: break
        out, i = [], 0
        while i < len(parts):
            if i + 1 < len(parts) and (parts[i], parts[i + 1]) == best: out.append(parts[i] + parts[i + 1]); i += 2
            else: out.append(parts[i]); i += 1
        parts = out
    return parts

def encode(text):
    text = html.unescape(html.unescape(text))
    for c in '\u2018\u2019\u201a\u201b': text = text.replace(c, "'")
    for c in '\u201c\u201d\u201e\u201f': text = text.replace(c, '"')
    text = re.sub(r'\s+', ' ', text).strip().lower()
    out = []
    for w in words(text):
        out += [ids[w]] if w in ('<|startoftext|>', '<|endoftext|>') else [ids[p] for p in bpe(w)]
    return out

texts = ['', ' ', 'a photo of a cat', "It's 2:30 o'clock, I'LL say WE'VE won!!! (maybe)", 'Caf\u00e9 na\u00efve \u00c9COLE',
         '\u65e5\u672c\u8a9e\u306e\u30c6\u30ad\u30b9\u30c8', '\U0001f600\U0001f4a9 emoji\u200d', '&amp;amp; &lt;b&gt; &#39;x&#x27; &quot;q&quot; &nope;',
         '<|startoftext|>hello<|endoftext|>', '\u039f\u0394\u039f\u03a3 \u03a3\u03b1\u03c3', '\u0130stanbul', '\u00bd \u2460 \u0967\u0968 12345',
         '\u201cquoted\u201d \u2018it\u2019s\u2019', 'tabs\tand\nlines\r\n\u00a0nbsp\u3000wide', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', "''s'd !'re", '\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35']
r = random.Random(7)
pool = 'abcdefghijklmnopqrstuvwxyz' * 4 + 'ABCXYZ0123456789 \t  .,;!?-_\'"()#<>|/\u00e9\u00df\u0416\u0436\u4e2d\u0915\u093f\U0001f680\u2013\u02b0'
common = [v[:-4] for v in vocab[600:20000] if v.endswith('</w>') and v[:-4].isascii()]
for _ in range(600): texts.append(''.join(r.choice(pool) for _ in range(r.randrange(1, 80))))
for _ in range(400): texts.append(' '.join(r.choice(common) for _ in range(r.randrange(1, 30))))
with open(folder + '/texts', 'wb') as f:
    for t in texts: f.write(t.encode() + b'\0')
for t in texts: print(len(encode(t)), *encode(t))
)py";

TEST(Tokenizer, BpeGivesTheIdsOfAnIndependentReferenceOverClipsMerges) {
  TemporaryFolder folder;
  std::istringstream expected(run_python(reference, folder.path().string()));
  auto tokenizer = load(read_file(folder / "merges.txt"));
  auto unpacked = load(read_file(folder / "merges.txt.gz"));
  ASSERT_TRUE(tokenizer && unpacked);
  EXPECT_EQ(tokenizer->vocabulary(), 49408);
  EXPECT_EQ(unpacked->vocabulary(), 49408);
  std::istringstream texts(read_file(folder / "texts"));
  std::size_t count = 0, number = 0;
  for (std::string text; std::getline(texts, text, '\0'); ++number) {
    ASSERT_TRUE(expected >> count) << text;
    std::vector<std::int32_t> want(count);
    for (std::int32_t& id : want) expected >> id;
    EXPECT_EQ(encoded(*tokenizer, text), want) << text;
    EXPECT_EQ(encoded(*unpacked, text), want) << text;
  }
  EXPECT_GE(number, 1000U);
  std::string back;
  ASSERT_TRUE(tokenizer->decode(encoded(*tokenizer, "A photo of a cat, it's 2"), back).ok());
  EXPECT_EQ(back, "a photo of a cat , it 's 2");
  EXPECT_EQ(encoded(*tokenizer, "<|startoftext|>"), (std::vector<std::int32_t>{49406}));
}

TEST(Tokenizer, UnicodeTablesEqualPythons) {
  using namespace detail;
  std::istringstream expected(
      run_python("import unicodedata as u\n"
                 "print(u.unidata_version)\n"
                 "for c in range(0x110000):\n"
                 "    k = u.category(chr(c))[0]; l = chr(c).lower()\n"
                 "    if k in 'LN' or l != chr(c): print(c, k in 'L', k in 'N', ord(l) if len(l) "
                 "== 1 else c)\n"));
  std::string version;
  expected >> version;
  if (version != "14.0.0") GTEST_SKIP() << "Python has Unicode " << version;
  std::uint32_t c = 0, lower = 0, next = 0;
  std::string letter, number;
  while (expected >> c >> letter >> number >> lower) {
    for (; next < c; ++next) {
      ASSERT_FALSE(is_letter(next) || is_number(next)) << next;
      ASSERT_EQ(to_lower(next), next);
    }
    ASSERT_EQ(is_letter(c), letter == "True") << c;
    ASSERT_EQ(is_number(c), number == "True") << c;
    ASSERT_EQ(to_lower(c), lower) << c;
    next = c + 1;
  }
  EXPECT_GT(next, 0x30000U);
}

TEST(Tokenizer, SmallMergesFilesKeepTheOrderOfIds) {
  auto tokenizer = load(small_merges);
  ASSERT_TRUE(tokenizer);
  EXPECT_EQ(tokenizer->vocabulary(), 512 + 4 + 2);
  EXPECT_EQ(encoded(*tokenizer, "cat DOG"), (std::vector<std::int32_t>{513, 515}));
  EXPECT_EQ(encoded(*tokenizer, "!"), (std::vector<std::int32_t>{256}));
  std::string text;
  ASSERT_TRUE(tokenizer->decode(std::vector<std::int32_t>{516, 513, 517, 0, 0}, text).ok());
  EXPECT_EQ(text, "cat");
  EXPECT_FALSE(tokenizer->decode(std::vector<std::int32_t>{518}, text).ok());
  EXPECT_FALSE(tokenizer->decode(std::vector<std::int32_t>{-1}, text).ok());
}

TEST(Tokenizer, TokensCutInsideACharacterDecodeToTheReplacementCharacter) {
  auto tokenizer = load(small_merges);
  auto ids = encoded(*tokenizer, "a\u65e5");
  ids.pop_back();
  std::string text;
  ASSERT_TRUE(tokenizer->decode(ids, text).ok());
  EXPECT_EQ(text, "a\uFFFD");
}

TEST(Tokenizer, BytesComeBackAsTheyWere) {
  auto tokenizer = byte_tokenizer();
  std::string text = "caf\u00e9\n\x01 Z", back;
  auto ids = encoded(*tokenizer, text);
  ids.resize(40, 0);
  ASSERT_TRUE(tokenizer->decode(ids, back).ok());
  EXPECT_EQ(back, text);
  EXPECT_EQ(tokenizer->vocabulary(), 257);
  std::vector<std::int32_t> none;
  EXPECT_FALSE(tokenizer->encode("\xFF", none).ok());
}

TEST(Tokenizer, PadsAndTruncatesToALength) {
  auto tokenizer = byte_tokenizer();
  std::vector<std::int32_t> ids(4, 99);
  std::int64_t valid = 0;
  ASSERT_TRUE(encode_padded(*tokenizer, "ab", {}, ids, valid).ok());
  EXPECT_EQ(ids, (std::vector<std::int32_t>{98, 99, 0, 0}));
  EXPECT_EQ(valid, 2);
  ASSERT_TRUE(encode_padded(*tokenizer, "abcd", {.truncate = false}, ids, valid).ok());
  ASSERT_TRUE(encode_padded(*tokenizer, "abcdef", {.pad_id = 7}, ids, valid).ok());
  EXPECT_EQ(ids.back(), 101);
  Status status = encode_padded(*tokenizer, "abcde", {.truncate = false}, ids, valid);
  ASSERT_FALSE(status.ok());
  EXPECT_STREQ(status.error().what(),
               "tokenizer: the text has 5 tokens, more than the 4 allowed. Allow more, or set "
               "truncate");
}

TEST(Tokenizer, LongWordsTakeNoQuadraticTime) {
  auto tokenizer = load("#\na a\naa aa\naaaa aaaa\naaaaaaaa aaaaaaaa\n");
  ASSERT_TRUE(tokenizer);
  auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(encoded(*tokenizer, std::string(100'000, 'a')).size(), 6'254U);
  std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  EXPECT_LT(seconds.count(), 20);
}

TEST(Tokenizer, BadMergesFilesAreRefusedWithTheReason) {
  std::vector<std::pair<std::string, std::string>> table{
      {"", "bpe: the file is empty"},
      {"#version\n", "bpe: no merges"},
      {"#version\na b c\n", "bpe: line 2: a merge needs two tokens that are known by then"},
      {"#version\na b\nabc d\n", "bpe: line 3: a merge needs two tokens that are known by then"},
      {"#\n\xFF\xFE", "bpe: not a merges file: it is not UTF-8"},
      {"\x1F\x8B\x08", "gzip: the file ends too early"},
      {"\x1F\x8Bxxxxxxxxxxxxxxxxx", "gzip: its data are damaged"}};
  for (const auto& [file, expected] : table) {
    std::string message;
    EXPECT_EQ(load(file, &message), nullptr);
    std::printf("    %s\n", message.c_str());
    EXPECT_EQ(message.find(expected), 0U) << message;
  }
}

}  // namespace
}  // namespace millrace
