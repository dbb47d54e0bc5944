// Private: how fields are laid out in an Arrow file, and how such a file is proven.
//
// Note [an Arrow cache in one file]
//
//   ARROW1, schema | record batches | end of stream, failures, index, seal | footer, ARROW1
//   header           data             tail                                   footer
//
// Readers find the footer from the end of the file and the batches from the footer, so the tail is
// seen by Millrace alone. It lists the failures (one JSON object a line: they may be many, and
// the schema's metadata is read by everybody at every opening), and for every batch a checksum of
// what decides where its rows are. The seal, right before the footer, holds the checksums of
// header, tail and footer and its own. The schema's metadata has the description under "millrace"
// in the header and in the footer, so a file with a damaged seal is still known to be ours.
//
// Everything is stored so that others read it: arrays of fixed shape as fixed-size lists, arrays
// that vary as lists (flat, with the shape in the field's metadata, and in a column of its own
// where it cannot be told from the length), texts as strings, encoded media as binary. Types that
// Arrow or numpy do not have in bytes (bool, bfloat16) are stored as the integer of their size.
#pragma once

#include <millrace/datasets/caches/cache_description.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace arrow {
class DataType;
class RecordBatch;
class Schema;
class Status;
}  // namespace arrow

namespace millrace {

constexpr std::string_view description_key = "millrace";
constexpr std::string_view shape_key = "millrace.shape", dtype_key = "millrace.dtype";
constexpr std::string_view shape_suffix = ".shape";
constexpr std::string_view source_column = "source", source_bytes_column = "source_bytes",
                           source_time_column = "source_time_ns";

struct BatchEntry {
  std::uint64_t offset, metadata_bytes, body_bytes, rows;
  std::uint64_t xxh3;  // see batch_checksum
};

struct ArrowSeal {
  char magic[8];
  std::uint64_t header_bytes, header_xxh3;
  std::uint64_t data_bytes;
  std::uint64_t failures_bytes, batches, tail_xxh3;
  std::uint64_t footer_xxh3;
  std::uint64_t seal_xxh3;  // of all before
};
static_assert(sizeof(ArrowSeal) == 72 && sizeof(BatchEntry) == 40);
constexpr std::size_t end_of_stream_bytes = 8, footer_end_bytes = 10;

// Sets the magic and the seal's own checksum; whether both are right.
void seal(ArrowSeal& seal);
bool is_sealed(const ArrowSeal& seal);

void check(const arrow::Status& status, const std::string& doing);

// The type that a field's elements are stored as.
std::shared_ptr<arrow::DataType> stored_type(DType dtype);
bool needs_shape_column(const Field& field);
// With the description in its metadata, unless it is empty.
std::shared_ptr<arrow::Schema> arrow_schema(const CacheInfo& info, const std::string& description);

// Of all that decides where a batch's rows are: its message header, the offsets of its lists and
// its shape columns; of the whole message if it is compressed.
std::uint64_t batch_checksum(std::span<const std::byte> message, std::uint64_t metadata_bytes,
                             bool compressed, const arrow::RecordBatch& batch);

}  // namespace millrace
