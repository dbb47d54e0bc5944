#include "arrow_layout.h"

#include <millrace/datasets/caches/checksum.h>
#include <millrace/pipeline/base/error.h>

#include <algorithm>
#include <cstring>

#include <arrow/api.h>
#include <arrow/util/key_value_metadata.h>

namespace millrace::detail {

namespace {

constexpr char seal_magic[8] = {'M', 'R', 'S', 'E', 'A', 'L', '0', '1'};

std::uint64_t seal_checksum(const ArrowSeal& seal) {
  return checksum_of(std::as_bytes(std::span(&seal, 1)).first(offsetof(ArrowSeal, seal_xxh3)));
}

std::shared_ptr<arrow::Field> arrow_field(const Field& field, bool binary) {
  std::shared_ptr<arrow::DataType> type = stored_type(field.dtype);
  if (field.text) {
    type = arrow::utf8();
  } else if (binary) {
    type = arrow::binary();
  } else if (!field.is_fixed()) {
    type = arrow::list(type);
  } else if (field.shape.rank() > 0) {
    std::int64_t elements = field.shape.elements();
    if (elements > INT32_MAX) {
      throw Error("field '" + field.name + "' has " + std::to_string(elements) +
                  " elements a row; Arrow's fixed-size lists hold at most 2147483647")
          .kind(ErrorKind::usage);
    }
    type = arrow::fixed_size_list(type, static_cast<std::int32_t>(elements));
  }
  return arrow::field(
      field.name, type,
      arrow::key_value_metadata({std::string(shape_key), std::string(dtype_key)},
                                {to_string(field.shape), std::string(name_of(field.dtype))}));
}

void add_buffer(Checksum& checksum, const std::shared_ptr<arrow::Buffer>& buffer,
                std::int64_t offset, std::int64_t bytes) {
  // Sizes that come from a file are not trusted.
  std::int64_t there = buffer ? buffer->size() : 0;
  offset = std::clamp<std::int64_t>(offset, 0, there);
  bytes = std::clamp<std::int64_t>(bytes, 0, there - offset);
  if (bytes > 0)
    checksum.add({reinterpret_cast<const std::byte*>(buffer->data()) + offset,
                  static_cast<std::size_t>(bytes)});
}

bool has_offsets(arrow::Type::type id) {
  return id == arrow::Type::LIST || id == arrow::Type::STRING || id == arrow::Type::BINARY;
}

}  // namespace

void seal(ArrowSeal& seal) {
  std::memcpy(seal.magic, seal_magic, sizeof seal_magic);
  seal.seal_xxh3 = seal_checksum(seal);
}

bool is_sealed(const ArrowSeal& seal) {
  return std::memcmp(seal.magic, seal_magic, sizeof seal_magic) == 0 &&
         seal.seal_xxh3 == seal_checksum(seal);
}

void check(const arrow::Status& status, const std::string& doing) {
  if (!status.ok()) throw Error("cannot " + doing + " (" + status.ToString() + ")");
}

std::shared_ptr<arrow::DataType> stored_type(DType dtype) {
  switch (dtype) {
    case DType::boolean:
    case DType::uint8:
      return arrow::uint8();
    case DType::int8:
      return arrow::int8();
    case DType::bfloat16:
    case DType::uint16:
      return arrow::uint16();
    case DType::int16:
      return arrow::int16();
    case DType::uint32:
      return arrow::uint32();
    case DType::int32:
      return arrow::int32();
    case DType::uint64:
      return arrow::uint64();
    case DType::int64:
      return arrow::int64();
    case DType::float16:
      return arrow::float16();
    case DType::float32:
      return arrow::float32();
    default:
      return arrow::float64();
  }
}

bool needs_shape_column(const Field& field) {
  return std::ranges::count(field.shape, -1) > 1 ||
         // An empty list can be [0, 3] or [5, 0]: its length does not give the shape.
         (!field.is_fixed() && std::ranges::count(field.shape, 0) > 0);
}

std::shared_ptr<arrow::Schema> arrow_schema(const CacheInfo& info, const std::string& description) {
  arrow::FieldVector fields;
  auto add = [&](std::shared_ptr<arrow::Field> field) {
    for (const auto& other : fields) {
      if (other->name() == field->name()) {
        throw Error("two columns would be named '" + field->name() + "'")
            .kind(ErrorKind::usage)
            .hint("A cache adds the columns source, source_bytes and source_time_ns");
      }
    }
    fields.push_back(std::move(field));
  };
  for (const Field& field : info.schema) {
    add(arrow_field(field, std::ranges::find(info.binary, field.name) != info.binary.end()));
  }
  for (const Field& field : info.schema) {
    if (needs_shape_column(field)) {
      add(arrow::field(field.name + std::string(shape_suffix),
                       arrow::fixed_size_list(arrow::int64(), field.shape.rank())));
    }
  }
  add(arrow::field(std::string(source_column), arrow::utf8()));
  add(arrow::field(std::string(source_bytes_column), arrow::int64()));
  add(arrow::field(std::string(source_time_column), arrow::int64()));
  std::shared_ptr<const arrow::KeyValueMetadata> metadata;
  if (!description.empty()) {
    metadata = arrow::key_value_metadata({std::string(description_key)}, {description});
  }
  return arrow::schema(fields, metadata);
}

std::uint64_t batch_checksum(std::span<const std::byte> message, std::uint64_t metadata_bytes,
                             bool compressed, const arrow::RecordBatch& batch) {
  if (compressed) return checksum_of(message);
  Checksum checksum;
  checksum.add(message.first(std::min<std::size_t>(metadata_bytes, message.size())));
  for (int i = 0; i < batch.num_columns(); ++i) {
    const arrow::ArrayData& data = *batch.column_data(i);
    const std::string& name = batch.schema()->field(i)->name();
    if (has_offsets(data.type->id()) && data.buffers.size() > 1) {
      add_buffer(checksum, data.buffers[1], 0, 4 * (data.length + 1));
    } else if (name.ends_with(shape_suffix) && data.type->id() == arrow::Type::FIXED_SIZE_LIST &&
               data.child_data.size() == 1 && data.child_data[0]->buffers.size() > 1) {
      add_buffer(checksum, data.child_data[0]->buffers[1], 0, 8 * data.child_data[0]->length);
    }
  }
  return checksum.value();
}

}  // namespace millrace::detail
