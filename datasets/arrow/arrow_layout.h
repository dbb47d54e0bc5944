// Private: how fields are stored in an Arrow file, and its checksums.
//
// Note [an Arrow cache in one file]
//
//   ARROW1, schema | record batches | end of stream, failures, index, seal | footer, ARROW1
//   header           data             tail                                   footer
//
// Arrow readers find the footer from the end of the file and the batches from the footer, so only
// Millrace reads the tail. The tail lists the failures (one JSON object per line; not in the
// schema's metadata, because there may be many and every reader loads the metadata), and for every
// batch a checksum of the bytes that say where its rows are. The seal, right before the footer,
// holds the checksums of the header, the tail, the footer and of itself. The schema's metadata has
// the description under "millrace" in the header and in the footer, so a file with a damaged seal
// is still recognized as a Millrace cache.
//
// Other programs can read all columns: arrays of fixed shape are fixed-size lists, arrays of
// variable shape are lists (flat; the shape is in the field's metadata, or in its own column if it
// does not follow from the length), texts are strings, encoded media are binary. Types that Arrow
// or numpy do not store as bytes (bool, bfloat16) are stored as unsigned integers of the same size.
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

namespace millrace::detail {

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

// seal() sets the magic and the seal's own checksum; is_sealed() checks both.
void seal(ArrowSeal& seal);
bool is_sealed(const ArrowSeal& seal);

// Throws an Error "cannot <doing> (...)" unless the status is ok.
void check(const arrow::Status& status, const std::string& doing);

// The Arrow type of a field's elements.
std::shared_ptr<arrow::DataType> stored_type(DType dtype);
bool needs_shape_column(const Field& field);
// The description, unless it is empty, goes into the schema's metadata.
std::shared_ptr<arrow::Schema> arrow_schema(const CacheInfo& info, const std::string& description);

// The checksum of the bytes that say where a batch's rows are: the message header, the offsets of
// lists and the shape columns. For a compressed batch: of the whole message.
std::uint64_t batch_checksum(std::span<const std::byte> message, std::uint64_t metadata_bytes,
                             bool compressed, const arrow::RecordBatch& batch);

}  // namespace millrace::detail
