#include "arrow_file.h"

#include "arrow_cache.h"

#include <millrace/datasets/caches/checksum.h>
#include <millrace/datasets/caches/shard_file.h>
#include <millrace/pipeline/base/error.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include <arrow/api.h>
#include <arrow/io/memory.h>
#include <arrow/ipc/api.h>
#include <arrow/util/key_value_metadata.h>

namespace millrace::detail {

namespace {

constexpr std::string_view file_magic = "ARROW1";
// The messages of a stream begin with this and their length; a length of 0 is the end.
constexpr std::string_view continuation = "\xff\xff\xff\xff";
constexpr std::string_view end_of_stream("\xff\xff\xff\xff\0\0\0\0", 8);

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The mapped file for Arrow. Arrays that Arrow makes keep the mapping alive.
class MappedBuffer : public arrow::Buffer {
 public:
  explicit MappedBuffer(millrace::Buffer buffer)
      : arrow::Buffer(reinterpret_cast<const std::uint8_t*>(buffer.data()),
                      static_cast<std::int64_t>(buffer.size())),
        kept_(std::move(buffer)) {}

 private:
  millrace::Buffer kept_;
};

std::shared_ptr<arrow::io::BufferReader> as_source(const millrace::Buffer& buffer) {
  return std::make_shared<arrow::io::BufferReader>(std::make_shared<MappedBuffer>(buffer));
}

arrow::ipc::IpcReadOptions reading_options() {
  arrow::ipc::IpcReadOptions options = arrow::ipc::IpcReadOptions::Defaults();
  options.use_threads = false;
  // Other writers may not align buffers for their elements: those buffers are copied.
  options.ensure_alignment = arrow::ipc::Alignment::kDataTypeSpecificAlignment;
  return options;
}

// The schema at the beginning of the file; null if it cannot be read.
std::shared_ptr<arrow::Schema> schema_of_header(std::span<const std::byte> file) {
  constexpr std::size_t offset = 8;  // the magic with its padding
  if (file.size() < offset) return nullptr;
  arrow::io::BufferReader stream(
      std::make_shared<arrow::Buffer>(reinterpret_cast<const std::uint8_t*>(file.data()) + offset,
                                      static_cast<std::int64_t>(file.size() - offset)));
  arrow::ipc::DictionaryMemo memo;
  auto schema = arrow::ipc::ReadSchema(&stream, &memo);
  return schema.ok() ? *schema : nullptr;
}

// True if an array is a view of the file; false if it was decompressed or copied.
bool lies_within(const arrow::ArrayData& data, std::span<const std::byte> file) {
  for (const auto& buffer : data.buffers) {
    if (buffer == nullptr || buffer->size() == 0) continue;
    const auto* at = reinterpret_cast<const std::byte*>(buffer->data());
    if (at < file.data() || at >= file.data() + file.size()) return false;
  }
  return std::ranges::all_of(data.child_data,
                             [&](const auto& child) { return lies_within(*child, file); });
}

bool lies_within(const arrow::RecordBatch& batch, std::span<const std::byte> file) {
  for (int column = 0; column < batch.num_columns(); ++column) {
    if (!lies_within(*batch.column_data(column), file)) return false;
  }
  return true;
}

std::string description_in(const arrow::Schema* schema) {
  if (schema == nullptr || schema->metadata() == nullptr) return {};
  return schema->metadata()->Get(std::string(description_key)).ValueOr("");
}

}  // namespace

ArrowFile::ArrowFile(const std::filesystem::path& path, Access access) : file_(path, access) {
  try {
    std::string_view text = as_text(file_.bytes());
    if (text.starts_with(continuation)) {
      read_stream();
      return;
    }
    if (!text.starts_with(file_magic)) {
      throw Error("not an Arrow file (it does not begin with ARROW1)");
    }
    if (text.size() < 2 * file_magic.size() + 4 || !text.ends_with(file_magic)) {
      throw Error("the Arrow file is cut off (it does not end with ARROW1)");
    }
    bool sealed = read_seal();
    read_reader();
    auto header = schema_of_header(file_.bytes());
    bool ours = !description_in(header.get()).empty() || !description_in(schema_.get()).empty();
    if (ours != sealed) throw Error("the seal is damaged");
    // Other writers (polars) may leave out the schema at the beginning; readers use the footer's.
    if (header == nullptr ? sealed : !header->Equals(*schema_, sealed)) {
      throw Error("the schemas at the beginning and at the end differ");
    }
    if (sealed) read_description();
    read_starts();
  } catch (Error& error) {
    throw error.at(path.string());
  }
}

ArrowFile::~ArrowFile() = default;

// False if there is no seal; throws if there is one and the file does not match it.
bool ArrowFile::read_seal() {
  auto bytes = file_.bytes();
  std::int32_t footer_length = 0;
  std::memcpy(&footer_length, bytes.last(footer_end_bytes).data(), sizeof footer_length);
  auto size = static_cast<std::int64_t>(bytes.size());
  std::int64_t footer = size - static_cast<std::int64_t>(footer_end_bytes) - footer_length;
  if (footer_length <= 0 || footer < 8) throw Error("the footer is damaged");
  auto seal_size = static_cast<std::int64_t>(sizeof(ArrowSeal));
  if (footer < seal_size) return false;
  ArrowSeal seal{};
  std::memcpy(&seal, bytes.data() + footer - seal_size, sizeof seal);
  if (!is_sealed(seal)) return false;
  auto until_seal = static_cast<std::uint64_t>(footer - seal_size);
  std::uint64_t index_bytes = 0, tail = 0;
  bool impossible = __builtin_mul_overflow(seal.batches, sizeof(BatchEntry), &index_bytes) ||
                    __builtin_add_overflow(seal.header_bytes, seal.data_bytes, &tail) ||
                    tail > until_seal || until_seal - tail < end_of_stream_bytes ||
                    seal.failures_bytes > until_seal - tail - end_of_stream_bytes ||
                    index_bytes > until_seal - tail - end_of_stream_bytes - seal.failures_bytes;
  if (impossible) throw Error("the seal does not fit the file");
  auto tail_bytes = bytes.subspan(tail, until_seal - tail);
  if (checksum_of(bytes.first(seal.header_bytes)) != seal.header_xxh3) {
    throw Error("the header is damaged (checksum mismatch)");
  }
  if (checksum_of(tail_bytes) != seal.tail_xxh3) {
    throw Error("the index is damaged (checksum mismatch)");
  }
  if (checksum_of(bytes.subspan(static_cast<std::size_t>(footer))) != seal.footer_xxh3) {
    throw Error("the footer is damaged (checksum mismatch)");
  }
  failures_ = as_text(tail_bytes.subspan(end_of_stream_bytes, seal.failures_bytes));
  index_ = tail_bytes.last(index_bytes);
  seal_ = seal;
  return true;
}

void ArrowFile::read_reader() {
  auto reader =
      arrow::ipc::RecordBatchFileReader::Open(as_source(file_.buffer()), reading_options());
  check(reader.status(), "open the Arrow file");
  reader_ = std::move(reader).ValueUnsafe();
  schema_ = reader_->schema();
}

void ArrowFile::read_description() {
  description_ = from_text(description_in(schema_.get()), path());
  const CacheInfo& info = description_->info;
  compressed_ = info.compression != "none";
  if (info.format != CacheFormat::arrow) throw Error("the description is not of an Arrow file");
  if (!arrow_schema(info, "")->Equals(*schema_, false)) {
    throw Error("the columns are not those of the description");
  }
}

int ArrowFile::batches() const {
  return reader_ ? reader_->num_record_batches() : static_cast<int>(streamed_.size());
}

// A stream has no index, so all batches are read now. They are views of the file and take no
// memory.
void ArrowFile::read_stream() {
  if (!as_text(file_.bytes()).ends_with(end_of_stream)) {
    throw Error("the Arrow stream is cut off (its end is not marked)");
  }
  auto reader =
      arrow::ipc::RecordBatchStreamReader::Open(as_source(file_.buffer()), reading_options());
  check(reader.status(), "open the Arrow stream");
  schema_ = (*reader)->schema();
  starts_ = {0};
  while (true) {
    auto batch = (*reader)->Next();
    check(batch.status(), "read record batch " + std::to_string(streamed_.size()));
    if (*batch == nullptr) break;
    if (!lies_within(**batch, file_.bytes())) {
      throw Error("the Arrow stream is compressed, so that its rows cannot be found")
          .hint("Write it as a file: pyarrow.ipc.new_file instead of new_stream");
    }
    starts_.push_back(starts_.back() + (*batch)->num_rows());
    streamed_.push_back(*batch);
  }
}

void ArrowFile::read_starts() {
  starts_ = {0};
  if (seal_) {
    if (seal_->batches != static_cast<std::uint64_t>(batches())) {
      throw Error("the index and the footer have different numbers of batches");
    }
    for (std::size_t i = 0; i < seal_->batches; ++i) {
      BatchEntry entry{};
      std::memcpy(&entry, index_.data() + i * sizeof entry, sizeof entry);
      if (entry.rows > INT64_MAX / 2 || starts_.back() > INT64_MAX / 2) {
        throw Error("the index tells of too many rows");
      }
      starts_.push_back(starts_.back() + static_cast<std::int64_t>(entry.rows));
    }
    if (starts_.back() != description_->info.rows) throw Error("the counts of rows differ");
    return;
  }
  for (int i = 0; i < batches(); ++i) {
    auto batch = reader_->ReadRecordBatch(i);
    check(batch.status(), "read record batch " + std::to_string(i));
    compressed_ = compressed_ || !lies_within(**batch, file_.bytes());
    starts_.push_back(starts_.back() + (*batch)->num_rows());
  }
}

std::shared_ptr<arrow::RecordBatch> ArrowFile::read_batch(int number) const {
  if (!reader_) return streamed_[static_cast<std::size_t>(number)];
  std::lock_guard lock(mutex_);
  auto batch = reader_->ReadRecordBatch(number);
  check(batch.status(), "read record batch " + std::to_string(number));
  return *batch;
}

std::shared_ptr<arrow::RecordBatch> ArrowFile::batch(int number) const {
  try {
    std::string name = "read record batch " + std::to_string(number);
    BatchEntry entry{};
    std::span<const std::byte> message;
    if (seal_) {
      std::memcpy(&entry, index_.data() + static_cast<std::size_t>(number) * sizeof entry,
                  sizeof entry);
      std::uint64_t bytes = entry.metadata_bytes + entry.body_bytes;
      if (bytes < entry.body_bytes || entry.offset > file_.size() ||
          bytes > file_.size() - entry.offset) {
        throw Error("record batch " + std::to_string(number) + " lies outside of the file");
      }
      message = file_.bytes().subspan(entry.offset, bytes);
      // The checksum comes first: the decompressor never sees damaged data.
      if (compressed_ && checksum_of(message) != entry.xxh3) {
        throw Error("record batch " + std::to_string(number) + " is damaged (checksum mismatch)");
      }
    }
    auto batch = read_batch(number);
    if (seal_ && !compressed_ &&
        batch_checksum(message, entry.metadata_bytes, false, *batch) != entry.xxh3) {
      throw Error("record batch " + std::to_string(number) + " is damaged (checksum mismatch)");
    }
    check(batch->ValidateFull(), name);
    std::int64_t expected =
        starts_[static_cast<std::size_t>(number) + 1] - starts_[static_cast<std::size_t>(number)];
    if (batch->num_rows() != expected) throw Error("the counts of rows differ");
    return batch;
  } catch (Error& error) {
    throw error.at(path().string());
  }
}

std::span<const std::byte> ArrowFile::data() const {
  return file_.bytes().subspan(seal_->header_bytes, seal_->data_bytes);
}

namespace {

// Compares every part with its checksum and validates every batch.
std::vector<std::string> verify(const ArrowFile& file) {
  std::vector<std::string> problems;
  for (int i = 0; i < file.batches(); ++i) {
    try {
      (void)file.batch(i);
    } catch (const Error& error) {
      problems.push_back(error.reason());
    }
    let_go(file.file().bytes());
  }
  if (!file.description()) return problems;
  std::size_t at = 0;
  std::int64_t row = 0;
  for (const CacheInfo::Part& part : file.description()->info.parts) {
    auto bytes = static_cast<std::size_t>(part.bytes);
    if (bytes > file.data().size() - at) {
      problems.push_back("the data end before row " + std::to_string(row));
      return problems;
    }
    if (to_hex(checksum_of_mapped(file.data().subspan(at, bytes))) != part.xxh3) {
      problems.push_back("rows " + std::to_string(row) + " to " +
                         std::to_string(row + part.rows - 1) + ": checksum mismatch");
    }
    at += bytes;
    row += part.rows;
  }
  if (at != file.data().size()) problems.emplace_back("there are data that no part tells of");
  std::int64_t failed = 0;
  for_each_line(file.failures(), [&](std::string_view line) {
    failed += from_line(line, file.path()).failed ? 1 : 0;
  });
  if (failed != file.description()->info.failed) {
    problems.emplace_back("the list of failures is not complete");
  }
  return problems;
}

}  // namespace

void check_written_arrow(const std::filesystem::path& path, const CacheDescription& description) {
  ArrowFile file(path, Access::sequential);
  auto problems = verify(file);
  if (!problems.empty() || !file.description() ||
      to_text(*file.description()) != to_text(description)) {
    throw Error("what was written does not read back" +
                (problems.empty() ? std::string() : ": " + problems[0]))
        .at(path.string());
  }
}

CacheCheck check_arrow(const std::filesystem::path& path) {
  ArrowFile file(path, Access::sequential);
  return {.rows = file.starts().back(),
          .bytes = static_cast<std::int64_t>(file.file().size()),
          .has_checksums = file.description().has_value(),
          .problems = verify(file)};
}

void for_each_arrow_failure(const std::filesystem::path& path,
                            const std::function<void(const CacheFailure&)>& use) {
  ArrowFile file(path);
  for_each_line(file.failures(), [&](std::string_view text) {
    SourceLine line = from_line(text, path);
    use({line.index, line.source, line.reason});
  });
}

}  // namespace millrace::detail
