// Tokens of videos in one array file, with their captions in another: training data of a
// text-to-video transformer.
//
//   TokenMemmap pairs("indices.npy", {.texts = "captions.txt"});
//   TokenMemmap digits("indices.bin", {.shape = {1280}, .digits = "labels.bin"});  // "3 7"
//
// Tokens keep their stored type unless `dtype` gives another.
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
  // For a raw file without a description: the shape of one row, the stored type and the number of
  // rows (-1: computed from the size of the file).
  Shape shape{};
  DType stored = DType::int64;
  std::int64_t rows = -1;
  std::optional<DType> dtype{};  // integer type of the batches, e.g. int64; default: as stored
  // Captions, from at most one file: `texts` is UTF-8 with one line per row; `digits`, uint8 [rows,
  // num_digits], gives captions like "3 7". Without a file there is no field "text".
  std::filesystem::path texts{};
  std::filesystem::path digits{};
  std::int64_t num_digits = 2;  // for a raw file; a .npy file has its own shape
  Access access = Access::normal;
};

// Fields: video (the tokens) and, with captions, text.
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
