// Arrays in files as data sets: .npy as numpy writes them, and headerless memmaps whose type and
// shape are told by a file beside them or by the caller. A row is copied from the mapping straight
// into its place in the batch.
//
//   NpyDataset tokens("tokens.npy", {.field = "tokens"});
//   RawMemmap frames("moving.bin", {.name = "video", .dtype = DType::uint8, .shape = {20, 64,
//   64}}); Loader loader(tokens, {.batch_size = 64, .shuffle = true});
#pragma once

#include <millrace/datasets/listing/mapped_file.h>
#include <millrace/pipeline/data/dataset.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace millrace {

struct DenseCache;

struct MemmapOptions {
  std::string field{};  // what to call it; empty: as the description says, or "values"
  Access access = Access::normal;
};

// Rows of one array in a file. The base of the two below.
class MemmapDataset : public Dataset {
 public:
  std::int64_t size() const override { return rows_.shape()[0]; }
  const Schema& schema() const override { return schema_; }
  Status load(std::int64_t index, const LoadContext& context, Sample& sample) const override;
  std::string describe(std::int64_t index) const override;
  std::int64_t samples_per_task() const override;
  void expect(std::int64_t index) const noexcept override;

  // All rows as one array over the mapping.
  const Array& rows() const { return rows_; }

 protected:
  MemmapDataset(std::filesystem::path path, DenseCache cache, MemmapOptions options);

 private:
  std::filesystem::path path_;
  Array rows_;
  std::size_t row_bytes_;
  Schema schema_;
};

class NpyDataset : public MemmapDataset {
 public:
  // Throws if the file is not what its header and its description say.
  explicit NpyDataset(const std::filesystem::path& path, MemmapOptions options = {});
};

class RawMemmap : public MemmapDataset {
 public:
  // As <path>.json says.
  explicit RawMemmap(const std::filesystem::path& path, MemmapOptions options = {});
  // As given; `rows`, if not -1, must fill the file exactly.
  RawMemmap(const std::filesystem::path& path, Field field, std::int64_t rows = -1,
            MemmapOptions options = {});
};

}  // namespace millrace
