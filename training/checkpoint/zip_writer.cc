#include "zip_writer.h"

#include "zip_format.h"

#include <algorithm>
#include <limits>

#include <zlib.h>

namespace millrace::detail {

namespace {

constexpr std::uint64_t record_alignment = 64;
// Small enough that the CRC-32 leaves a piece in the processor's cache for the write after it,
// large enough that DurableFile does not copy it.
constexpr std::size_t piece_bytes = std::size_t{1} << 20;
constexpr std::uint16_t record_flags = 0x0808;  // names are UTF-8, a data descriptor follows
constexpr std::uint16_t version_zip = 20, version_zip64 = 45;
constexpr std::uint16_t padding_tag = 0x4246;  // "FB", as PyTorch pads

template <class T>
void append(std::string& bytes, T number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

std::uint32_t to_field(std::uint64_t number) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(number, zip::in_zip64));
}

bool needs_zip64(std::uint64_t number) {
  return number >= zip::in_zip64;
}

std::string local_header(const std::string& name, std::uint64_t offset, std::uint64_t size) {
  const bool large = needs_zip64(size);
  std::string extra;
  if (large) {
    append(extra, zip::zip64_tag);
    append(extra, std::uint16_t{16});
    append(extra, size);
    append(extra, size);
  }
  const std::uint64_t before = offset + zip::local_bytes + name.size() + extra.size() + 4;
  const std::uint64_t padding = (record_alignment - before % record_alignment) % record_alignment;
  append(extra, padding_tag);
  append(extra, static_cast<std::uint16_t>(padding));
  extra.append(padding, 'Z');

  std::string header;
  append(header, zip::local_signature);
  append(header, large ? version_zip64 : version_zip);
  append(header, record_flags);
  append(header, std::uint16_t{0});  // not compressed
  append(header, std::uint32_t{0});  // no time, so that equal contents give equal files
  append(header, std::uint32_t{0});  // CRC-32 and sizes are in the descriptor
  append(header, large ? zip::in_zip64 : 0U);
  append(header, large ? zip::in_zip64 : 0U);
  append(header, static_cast<std::uint16_t>(name.size()));
  append(header, static_cast<std::uint16_t>(extra.size()));
  return header + name + extra;
}

std::string descriptor(std::uint32_t checksum, std::uint64_t size) {
  std::string bytes;
  append(bytes, zip::descriptor_signature);
  append(bytes, checksum);
  for (int i = 0; i < 2; ++i) {  // packed and plain
    if (needs_zip64(size)) {
      append(bytes, size);
    } else {
      append(bytes, static_cast<std::uint32_t>(size));
    }
  }
  return bytes;
}

}  // namespace

ZipWriter::ZipWriter(std::string folder, Sink sink)
    : folder_(std::move(folder)), sink_(std::move(sink)) {}

void ZipWriter::put(const std::string& bytes) {
  sink_(std::as_bytes(std::span(bytes)));
  offset_ += bytes.size();
}

void ZipWriter::add(const std::string& name, std::string_view content) {
  add(name, std::as_bytes(std::span(content)));
}

void ZipWriter::add(const std::string& name, std::span<const std::byte> content) {
  Entry entry{
      .name = folder_ + "/" + name, .header = offset_, .size = content.size(), .checksum = 0};
  put(local_header(entry.name, offset_, entry.size));
  uLong checksum = crc32_z(0, nullptr, 0);
  while (!content.empty()) {
    const auto piece = content.first(std::min(content.size(), piece_bytes));
    checksum = crc32_z(checksum, reinterpret_cast<const Bytef*>(piece.data()), piece.size());
    sink_(piece);
    content = content.subspan(piece.size());
  }
  offset_ += entry.size;
  entry.checksum = static_cast<std::uint32_t>(checksum);
  put(descriptor(entry.checksum, entry.size));
  entries_.push_back(std::move(entry));
}

// Twice 20 digits, of all names and of all checksums: equal contents have equal ids.
std::string ZipWriter::serialization_id() const {
  std::uint64_t names = 0xcbf29ce484222325;  // FNV-1a
  uLong checksums = crc32_z(0, nullptr, 0);
  for (const Entry& entry : entries_) {
    for (char c : entry.name) names = (names ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    checksums =
        crc32_z(checksums, reinterpret_cast<const Bytef*>(&entry.checksum), sizeof entry.checksum);
  }
  auto digits = [](std::uint64_t number) {
    const std::string text = std::to_string(number);
    return std::string(20 - text.size(), '0') + text;
  };
  return digits(names) + digits(checksums);
}

void ZipWriter::finish() {
  add("version", "3\n");
  add(".data/serialization_id", serialization_id());
  put_directory();
}

void ZipWriter::put_directory() {
  const std::uint64_t start = offset_;
  for (const Entry& entry : entries_) {
    std::string extra;
    for (const std::uint64_t number : {entry.size, entry.size, entry.header}) {
      if (needs_zip64(number)) append(extra, number);
    }
    if (!extra.empty()) {
      std::string tag;
      append(tag, zip::zip64_tag);
      append(tag, static_cast<std::uint16_t>(extra.size()));
      extra.insert(0, tag);
    }
    std::string bytes;
    append(bytes, zip::entry_signature);
    append(bytes, version_zip64);  // made by
    append(bytes, extra.empty() ? version_zip : version_zip64);
    append(bytes, record_flags);
    append(bytes, std::uint16_t{0});
    append(bytes, std::uint32_t{0});
    append(bytes, entry.checksum);
    append(bytes, to_field(entry.size));
    append(bytes, to_field(entry.size));
    append(bytes, static_cast<std::uint16_t>(entry.name.size()));
    append(bytes, static_cast<std::uint16_t>(extra.size()));
    bytes.append(10, '\0');  // no comment, disk 0, no attributes
    append(bytes, to_field(entry.header));
    put(bytes + entry.name + extra);
  }
  const std::uint64_t end = offset_, size = end - start, count = entries_.size();
  std::string bytes;
  append(bytes, zip::end64_signature);
  append(bytes, zip::end64_bytes - 12);  // what follows this field
  append(bytes, version_zip64);
  append(bytes, version_zip64);
  append(bytes, std::uint64_t{0});  // disk 0, which holds the directory
  append(bytes, count);
  append(bytes, count);
  append(bytes, size);
  append(bytes, start);
  append(bytes, zip::locator64_signature);
  append(bytes, std::uint32_t{0});
  append(bytes, end);
  append(bytes, std::uint32_t{1});  // one disk
  const auto short_count = static_cast<std::uint16_t>(
      std::min<std::uint64_t>(count, std::numeric_limits<std::uint16_t>::max()));
  append(bytes, zip::end_signature);
  append(bytes, std::uint32_t{0});
  append(bytes, short_count);
  append(bytes, short_count);
  append(bytes, to_field(size));
  append(bytes, to_field(start));
  append(bytes, std::uint16_t{0});  // no comment
  put(bytes);
}

}  // namespace millrace::detail
