// Writes rows as Arrow record batches, and joins shards to one file.
#include "arrow_file.h"
#include "arrow_layout.h"

#include <millrace/datasets/arrays/dense_cache.h>
#include <millrace/datasets/caches/checksum.h>
#include <millrace/datasets/caches/shard_file.h>
#include <millrace/datasets/listing/printable.h>
#include <millrace/pipeline/base/durable_file.h>
#include <millrace/pipeline/base/error.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <future>
#include <string>
#include <utility>

#include <arrow/api.h>
#include <arrow/io/memory.h>
#include <arrow/ipc/api.h>
#include <arrow/util/compression.h>

namespace millrace::detail {

namespace {

// Large enough for sequential reads; small enough that one row of a compressed batch is read fast.
constexpr std::int64_t batch_bytes = 4 << 20, compressed_batch_bytes = 1 << 20;

arrow::ipc::IpcWriteOptions write_options(const CacheInfo& info) {
  arrow::ipc::IpcWriteOptions options = arrow::ipc::IpcWriteOptions::Defaults();
  options.use_threads = false;
  if (info.compression != "none") {
    int level = std::stoi(info.compression.substr(info.compression.find(':') + 1));
    auto codec = arrow::util::Codec::Create(arrow::Compression::ZSTD, level);
    check(codec.status(), "compress with zstd");
    options.codec = std::move(codec).ValueUnsafe();
  }
  return options;
}

// An Arrow output stream that calls a function.
class Sink : public arrow::io::OutputStream {
 public:
  explicit Sink(Payload::Write write) : write_(std::move(write)) {}
  arrow::Status Write(const void* data, std::int64_t bytes) override {
    write_({static_cast<const std::byte*>(data), static_cast<std::size_t>(bytes)});
    position_ += bytes;
    return arrow::Status::OK();
  }
  arrow::Status Close() override { return arrow::Status::OK(); }
  bool closed() const override { return false; }
  arrow::Result<std::int64_t> Tell() const override { return position_; }
  void send_to(Payload::Write write) { write_ = std::move(write); }

 private:
  Payload::Write write_;
  std::int64_t position_ = 0;
};

// One column of the batch that is being built. Offsets count elements.
struct Column {
  std::shared_ptr<arrow::DataType> type;
  std::vector<std::byte> values;
  std::vector<std::int32_t> offsets;

  void add(const void* data, std::size_t bytes) {
    const auto* from = static_cast<const std::byte*>(data);
    values.insert(values.end(), from, from + bytes);
  }
  void end_list(std::int64_t elements) {
    offsets.push_back(offsets.back() + static_cast<std::int32_t>(elements));
  }
  std::int64_t bytes() const { return std::ssize(values) + 4 * std::ssize(offsets); }
};

std::shared_ptr<arrow::Buffer> take(auto& vector) {
  return arrow::Buffer::FromVector(std::exchange(vector, {}));
}

std::shared_ptr<arrow::ArrayData> finish(Column& column, std::int64_t rows) {
  auto values = take(column.values);
  std::shared_ptr<arrow::Buffer> none;
  switch (column.type->id()) {
    case arrow::Type::STRING:
    case arrow::Type::BINARY: {
      auto offsets = take(column.offsets);
      column.offsets = {0};
      return arrow::ArrayData::Make(column.type, rows, {none, offsets, values}, 0);
    }
    case arrow::Type::LIST: {
      auto item = static_cast<const arrow::ListType&>(*column.type).value_type();
      auto child = arrow::ArrayData::Make(item, column.offsets.back(), {none, values}, 0);
      auto offsets = take(column.offsets);
      column.offsets = {0};
      return arrow::ArrayData::Make(column.type, rows, {none, offsets}, {child}, 0);
    }
    case arrow::Type::FIXED_SIZE_LIST: {
      const auto& list = static_cast<const arrow::FixedSizeListType&>(*column.type);
      auto child =
          arrow::ArrayData::Make(list.value_type(), rows * list.list_size(), {none, values}, 0);
      return arrow::ArrayData::Make(column.type, rows, {none}, {child}, 0);
    }
    default:
      return arrow::ArrayData::Make(column.type, rows, {none, values}, 0);
  }
}

class ArrowPayload : public Payload {
 public:
  ArrowPayload(const CacheInfo& info, Write write)
      : info_(info),
        schema_(arrow_schema(info, "")),
        options_(write_options(info)),
        sink_(std::move(write)),
        limit_(info.compression == "none" ? batch_bytes : compressed_batch_bytes) {
    for (const auto& field : schema_->fields()) columns_.push_back({field->type(), {}, {0}});
    // Batches have the same number of rows if possible, so that a row is found by its number.
    std::int64_t row = row_bytes(info.schema);
    if (row <= 0 || info.compression != "none") return;
    auto fitting = static_cast<std::uint64_t>(std::max<std::int64_t>(limit_ / row, 1));
    most_rows_ = static_cast<std::int64_t>(std::bit_floor(fitting));
    limit_ = INT32_MAX;
  }

  void append(const CacheSource& source, std::span<const Array> row) override {
    std::int64_t largest = 0;
    for (const Array& value : row) largest = std::max(largest, value.elements());
    if (largest > INT32_MAX) {
      throw Error("a row has " + std::to_string(largest) +
                  " elements, more than Arrow's lists hold (2147483647)")
          .at(source.name);
    }
    // Offsets have 32 bits: the batch ends before they overflow.
    if (bytes_ > 0 && bytes_ + largest > INT32_MAX) flush();
    std::size_t next = 0;
    for (int i = 0; i < info_.schema.size(); ++i) {
      const Array& value = row[static_cast<std::size_t>(i)];
      Column& column = columns_[next++];
      column.add(value.data(), value.bytes());
      if (!info_.schema[i].is_fixed()) column.end_list(value.elements());
    }
    for (int i = 0; i < info_.schema.size(); ++i) {
      if (!needs_shape_column(info_.schema[i])) continue;
      const Shape& shape = row[static_cast<std::size_t>(i)].shape();
      columns_[next++].add(shape.begin(), 8 * static_cast<std::size_t>(shape.rank()));
    }
    std::string name = printable(std::string_view(source.name));
    columns_[next].add(name.data(), name.size());
    columns_[next++].end_list(std::ssize(name));
    columns_[next++].add(&source.bytes, 8);
    columns_[next].add(&source.time_ns, 8);
    ++rows_;
    bytes_ = 0;
    for (const Column& column : columns_) bytes_ += column.bytes();
    if (bytes_ >= limit_ || rows_ == most_rows_) flush();
  }

  void finish() override { flush(); }

 private:
  void flush() {
    if (rows_ == 0) return;
    std::vector<std::shared_ptr<arrow::ArrayData>> columns;
    for (Column& column : columns_) columns.push_back(detail::finish(column, rows_));
    auto batch = arrow::RecordBatch::Make(schema_, rows_, std::move(columns));
    arrow::ipc::IpcPayload payload;
    check(arrow::ipc::GetRecordBatchPayload(*batch, options_, &payload), "make a record batch");
    std::int32_t metadata_length = 0;
    check(arrow::ipc::WriteIpcPayload(payload, options_, &sink_, &metadata_length),
          "write a record batch");
    rows_ = bytes_ = 0;
  }

  CacheInfo info_;
  std::shared_ptr<arrow::Schema> schema_;
  arrow::ipc::IpcWriteOptions options_;
  Sink sink_;
  std::int64_t limit_, most_rows_ = INT64_MAX, rows_ = 0, bytes_ = 0;
  std::vector<Column> columns_;
};

// Writes the parts of a file in order and keeps their checksums.
class ArrowJoiner {
 public:
  ArrowJoiner(const CacheDescription& description, DurableFile& file)
      : info_(description.info),
        file_(file),
        schema_(arrow_schema(info_, to_text(description))),
        options_(write_options(info_)),
        sink_([this](auto bytes) {
          sum_.add(bytes);
          file_.write(bytes);
        }) {
    auto writer = arrow::ipc::internal::MakePayloadFileWriter(&sink_, schema_, options_);
    check(writer.status(), "begin the file");
    writer_ = std::move(writer).ValueUnsafe();
    check(writer_->Start(), "begin the file");
    arrow::ipc::IpcPayload payload;
    arrow::ipc::DictionaryFieldMapper no_dictionaries(*schema_);
    check(arrow::ipc::GetSchemaPayload(*schema_, options_, no_dictionaries, &payload),
          "describe the schema");
    check(writer_->WritePayload(payload), "write the schema");
    seal_.header_bytes = file_.size();
    seal_.header_xxh3 = std::exchange(sum_, Checksum()).value();
  }

  void add(std::span<const std::byte> messages) {
    auto source = std::make_shared<arrow::io::BufferReader>(std::make_shared<arrow::Buffer>(
        reinterpret_cast<const std::uint8_t*>(messages.data()), std::ssize(messages)));
    std::size_t at = 0;
    while (at < messages.size()) {
      auto read = arrow::ipc::ReadMessage(source.get());
      check(read.status(), "read a record batch again");
      std::unique_ptr<arrow::ipc::Message> message = std::move(read).ValueUnsafe();
      if (message == nullptr) throw Error("a shard ends inside a record batch");
      std::uint64_t before = file_.size();
      write(*message);
      std::size_t bytes = file_.size() - before;
      auto original = messages.subspan(at, std::min(bytes, messages.size() - at));
      remember(*message, before, bytes, original);
      let_go(original);
      at += bytes;
    }
  }

  // `failures` calls its argument for every line.
  void end(const std::function<void(const std::function<void(std::string_view)>&)>& failures) {
    seal_.data_bytes = file_.size() - seal_.header_bytes;
    std::vector<std::byte> last;  // end of stream and footer, which Arrow writes together
    sink_.send_to([&](auto bytes) { last.insert(last.end(), bytes.begin(), bytes.end()); });
    check(writer_->Close(), "end the file");
    std::span<const std::byte> rest(last);
    constexpr unsigned char mark[end_of_stream_bytes] = {255, 255, 255, 255, 0, 0, 0, 0};
    if (rest.size() < sizeof mark || std::memcmp(rest.data(), mark, sizeof mark) != 0) {
      throw Error("Arrow's footer does not begin as it should");
    }
    sum_ = Checksum();
    auto put = [&](std::span<const std::byte> bytes) {
      sum_.add(bytes);
      file_.write(bytes);
    };
    put(rest.first(sizeof mark));
    std::uint64_t before = file_.size();
    failures([&](std::string_view line) {
      put(std::as_bytes(std::span(line)));
      put(std::as_bytes(std::span("\n", 1)));
    });
    seal_.failures_bytes = file_.size() - before;
    constexpr std::byte zeros[8] = {};
    put(std::span(zeros).first((8 - file_.size() % 8) % 8));
    put(std::as_bytes(std::span(entries_)));
    seal_.batches = entries_.size();
    seal_.tail_xxh3 = sum_.value();
    seal_.footer_xxh3 = checksum_of(rest.subspan(sizeof mark));
    seal(seal_);
    file_.write(std::as_bytes(std::span(&seal_, 1)));
    file_.write(rest.subspan(sizeof mark));
  }

 private:
  void write(const arrow::ipc::Message& message) {
    arrow::ipc::IpcPayload payload;
    payload.type = message.type();
    payload.metadata = message.metadata();
    payload.body_buffers = {message.body()};
    payload.body_length = message.body_length();
    check(writer_->WritePayload(payload), "write a record batch");
  }

  void remember(const arrow::ipc::Message& message, std::uint64_t offset, std::uint64_t bytes,
                std::span<const std::byte> original) {
    arrow::ipc::DictionaryMemo no_dictionaries;
    arrow::ipc::IpcReadOptions options = arrow::ipc::IpcReadOptions::Defaults();
    options.use_threads = false;  // Millrace has its own thread pool
    auto batch = arrow::ipc::ReadRecordBatch(message, schema_, &no_dictionaries, options);
    check(batch.status(), "read a record batch again");
    auto body = static_cast<std::uint64_t>(message.body_length());
    BatchEntry entry{.offset = offset,
                     .metadata_bytes = bytes - body,
                     .body_bytes = body,
                     .rows = static_cast<std::uint64_t>((*batch)->num_rows()),
                     .xxh3 = 0};
    entry.xxh3 =
        batch_checksum(original, entry.metadata_bytes, info_.compression != "none", **batch);
    entries_.push_back(entry);
  }

  const CacheInfo& info_;
  DurableFile& file_;
  std::shared_ptr<arrow::Schema> schema_;
  arrow::ipc::IpcWriteOptions options_;
  Checksum sum_;
  Sink sink_;
  std::unique_ptr<arrow::ipc::internal::IpcPayloadWriter> writer_;
  ArrowSeal seal_{};
  std::vector<BatchEntry> entries_;
};

}  // namespace

std::unique_ptr<Payload> arrow_payload(const CacheInfo& plan, Payload::Write write) {
  return std::make_unique<ArrowPayload>(plan, std::move(write));
}

void join_arrow(CacheDescription& description, const JoinedShards& shards,
                const std::filesystem::path& folder, const std::filesystem::path& out) {
  // The header describes all shards, so they are scanned before they are copied.
  auto open = [&](std::size_t i) {
    return open_shard(shards.paths[i], shards.plan, static_cast<std::int64_t>(i));
  };
  for (std::size_t i = 0; i < shards.paths.size(); ++i) {
    OpenShard shard = open(i);
    count_failures(description, shard.lines(), shards.paths[i]);
    description.info.parts.push_back({.rows = static_cast<std::int64_t>(shard.tail.rows),
                                      .bytes = static_cast<std::int64_t>(shard.tail.payload_bytes),
                                      .xxh3 = to_hex(shard.tail.payload_xxh3)});
  }
  DurableFile data(folder, out);
  ArrowJoiner joiner(description, data);
  for (std::size_t i = 0; i < shards.paths.size(); ++i) joiner.add(open(i).payload());
  joiner.end([&](const auto& use) {
    for (std::size_t i = 0; i < shards.paths.size(); ++i) for_each_line(open(i).lines(), use);
  });
  data.flush();
  std::future<void> on_disk = std::async(std::launch::async, [&data] { data.sync(); });
  check_written_arrow(data.temporary(), description);
  on_disk.get();
  data.commit();
}

}  // namespace millrace::detail
