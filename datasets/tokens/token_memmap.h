// Tokens of videos (or of anything else) in one array file, with the texts that belong to them in
// another: what a text-to-video transformer trains on.
//
//   TokenMemmap pairs("indices.npy", {.texts = "captions.txt"});
//   TokenMemmap digits("indices.bin", {.shape = {1280}, .digits = "labels.bin"});   // "3 7"
//
// Tokens keep the type they are stored in unless `dtype` asks for another.
#pragma once

#include <millrace/datasets/listing/mapped_file.h>
#include <millrace/pipeline/data/dataset.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace millrace {

struct TokenMemmapOptions {
  // Of a raw file without a description: one row, and how many there are (-1: as many as fit).
  Shape shape{};
  DType stored = DType::int64;
  std::int64_t rows = -1;
  std::optional<DType> dtype{};  // what a batch shall have, e.g. int64; an integer type
  // The texts: a UTF-8 file with one line a row, or uint8 digits [rows, num_digits], which read
  // "3 7". At most one of them; none: there is no field "text".
  std::filesystem::path texts{};
  std::filesystem::path digits{};
  std::int64_t num_digits = 2;  // of a raw file; a .npy file tells itself
  Access access = Access::normal;
};

// Fields: video, the tokens; text, if there are texts.
class TokenMemmap : public Dataset {
 public:
  explicit TokenMemmap(const std::filesystem::path& tokens, TokenMemmapOptions options = {});

  std::int64_t size() const override;
  const Schema& schema() const override;
  Status load(std::int64_t index, const LoadContext& context, Sample& sample) const override;
  std::string describe(std::int64_t index) const override;
  std::int64_t samples_per_task() const override { return 8; }

 private:
  struct State;
  std::shared_ptr<const State> state_;
};

}  // namespace millrace
