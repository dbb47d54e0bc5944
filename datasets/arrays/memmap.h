// Arrays in files as data sets: .npy files as numpy writes them, and raw files without a header,
// whose dtype and shape come from a description beside them or from the caller. The file is mapped,
// and a row is copied from it straight into the batch.
//
//   NpyDataset tokens("tokens.npy", {.field = "tokens"});
//   RawMemmap frames("moving.bin",
//                    {.name = "video", .dtype = DType::uint8, .shape = {20, 64, 64}});
#pragma once

#include <millrace/datasets/listing/mapped_file.h>
#include <millrace/pipeline/data/dataset.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace millrace {

namespace detail {
struct DenseCache;
}

struct MemmapOptions {
  std::string field{};  // field name; empty: from the description, else "values"
  Access access = Access::normal;
};

// Rows of one array in a file: the common base of NpyDataset and RawMemmap.
class MemmapDataset : public Dataset {
 public:
  std::int64_t size() const override { return rows_.shape()[0]; }
  const Schema& schema() const override { return schema_; }
  Status load(std::int64_t index, const LoadContext& context, Sample& sample) const override;
  std::string describe(std::int64_t index) const override;
  std::int64_t samples_per_task() const override;
  void expect(std::int64_t index, std::int64_t epoch = 0) const noexcept override;

  // All rows as one array, a view of the mapped file.
  const Array& rows() const { return rows_; }

 protected:
  MemmapDataset(std::filesystem::path path, detail::DenseCache cache, MemmapOptions options);

 private:
  std::filesystem::path path_;
  Array rows_;
  std::size_t row_bytes_;
  Schema schema_;
};

class NpyDataset : public MemmapDataset {
 public:
  // Throws if the file does not match its header or its description.
  explicit NpyDataset(const std::filesystem::path& path, MemmapOptions options = {});
};

class RawMemmap : public MemmapDataset {
 public:
  // With the dtype and shape that <path>.json gives.
  explicit RawMemmap(const std::filesystem::path& path, MemmapOptions options = {});
  // With the dtype and shape of `field`. Throws unless `rows` rows (-1: any number) fill the file.
  RawMemmap(const std::filesystem::path& path, Field field, std::int64_t rows = -1,
            MemmapOptions options = {});
};

}  // namespace millrace
