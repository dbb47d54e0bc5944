#include "tools/preprocess/tokens/text_tokens.h"

#include <millrace/datasets/caches/cache_writer.h>
#include <millrace/datasets/listing/mapped_file.h>
#include <millrace/decoders/text/tokenizer.h>
#include <millrace/pipeline/data/map.h>

#include <cstring>

#include <fmt/format.h>
#include <xxhash.h>

namespace millrace {

namespace {

[[noreturn]] void refuse(const std::string& problem) {
  throw Error(problem).kind(ErrorKind::usage);
}

struct Chosen {
  std::shared_ptr<const Tokenizer> tokenizer;
  std::string name;
};

Chosen choose(const std::string& text) {
  if (text == "bytes") return {byte_tokenizer(), "bytes"};
  if (!text.starts_with("bpe:")) {
    refuse("--tokenizer takes bytes or bpe:FILE, but was given '" + text + "'");
  }
  std::string path = text.substr(4);
  MappedFile file(path);
  std::unique_ptr<const Tokenizer> made;
  if (Status status = load_bpe(file.bytes(), {}, made); !status.ok()) {
    throw status.error().at(path).kind(ErrorKind::usage);
  }
  return {std::move(made),
          fmt::format("bpe, merges xxh3:{:016x}", XXH3_64bits(file.bytes().data(), file.size()))};
}

template <typename T>
void put(std::span<const std::int32_t> ids, const Array& to) {
  auto out = to.as<T>();
  for (std::size_t i = 0; i < ids.size(); ++i) out[i] = static_cast<T>(ids[i]);
}

void put_as(std::span<const std::int32_t> ids, const Array& to) {
  switch (to.dtype()) {
    case DType::uint8:
      return put<std::uint8_t>(ids, to);
    case DType::int8:
      return put<std::int8_t>(ids, to);
    case DType::uint16:
      return put<std::uint16_t>(ids, to);
    case DType::int16:
      return put<std::int16_t>(ids, to);
    case DType::uint32:
      return put<std::uint32_t>(ids, to);
    case DType::int32:
      return put<std::int32_t>(ids, to);
    default:
      return put<std::int64_t>(ids, to);
  }
}

}  // namespace

DType parse_dtype(const std::string& name) {
  for (DType dtype : {DType::uint8, DType::int8, DType::uint16, DType::int16, DType::uint32,
                      DType::int32, DType::int64}) {
    if (name == name_of(dtype)) return dtype;
  }
  refuse("--dtype takes uint8, int8, uint16, int16, uint32, int32 or int64, but was given '" +
         name + "'");
}

DType token_dtype(const std::string& asked, std::int64_t vocabulary) {
  if (asked.empty()) return smallest_dtype(vocabulary);
  DType dtype = parse_dtype(asked);
  bool is_signed = asked[0] == 'i';
  auto bits = static_cast<int>(item_size(dtype)) * 8 - (is_signed ? 1 : 0);
  if (bits < 63 && vocabulary > (std::int64_t{1} << bits)) {
    refuse(fmt::format("--dtype {} cannot hold a vocabulary of {}; the smallest that can is {}",
                       asked, vocabulary, name_of(smallest_dtype(vocabulary))));
  }
  return dtype;
}

void tokenize(Job& job, const TokenizeOptions& options) {
  Chosen chosen = choose(options.tokenizer);
  DType dtype = token_dtype(options.dtype, chosen.tokenizer->vocabulary());
  std::int64_t length = options.max_length;
  std::vector<Field> fields;
  for (const Field& field : job.data->schema()) {
    if (field.name != "text") {
      fields.push_back(field);
      continue;
    }
    fields.push_back({.name = "tokens", .dtype = dtype, .shape = {length > 0 ? length : -1}});
  }
  PaddedOptions padding{.truncate = !options.no_cut};
  auto encode = [tokenizer = chosen.tokenizer, length, padding](const Sample& in, Sample& out,
                                                                const LoadContext&) {
    std::vector<std::int32_t> ids(static_cast<std::size_t>(length));
    std::int64_t valid = 0;
    Status status = length > 0 ? encode_padded(*tokenizer, in.text("text"), padding, ids, valid)
                               : tokenizer->encode(in.text("text"), ids);
    if (!status.ok()) throw status.error();
    put_as(ids, out.resize("tokens", {static_cast<std::int64_t>(ids.size())}));
    for (const Field& field : in.schema()) {
      if (field.name != "text") out.set(field.name, in[field.name]);
    }
  };
  job.data = map(job.data, Schema(fields), encode);
  job.options["tokenizer"] = chosen.name;
  job.options["vocabulary"] = std::to_string(chosen.tokenizer->vocabulary());
  job.options["max_length"] = length > 0 ? std::to_string(length) : "as it is";
  job.options["cut"] = options.no_cut ? "no" : "yes";
}

}  // namespace millrace
