#include "zip_reader.h"

#include "zip_format.h"

#include <millrace/pipeline/base/error.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

namespace millrace::detail {

using namespace zip;  // NOLINT: constants of this format only

namespace {

// Little-endian number at `at`; the caller has checked that it is there.
template <class T>
T number(const std::string& bytes, std::uint64_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

}  // namespace

ZipReader::ZipReader(std::filesystem::path path) : path_(std::move(path)) {
  // O_NONBLOCK: to open a FIFO would wait for its writer.
  file_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file_ < 0) fail(std::string("cannot be read (") + std::strerror(errno) + ")");
  try {
    struct stat info {};
    if (::fstat(file_, &info) != 0)
      fail(std::string("cannot be read (") + std::strerror(errno) + ")");
    if (!S_ISREG(info.st_mode)) fail("is not a file");
    bytes_ = static_cast<std::uint64_t>(info.st_size);
    find_directory();
  } catch (...) {
    ::close(file_);
    throw;
  }
}

ZipReader::~ZipReader() {
  ::close(file_);
}

void ZipReader::fail(const std::string& why) const {
  throw Error(why).at(path_.string()).stage("checkpoint");
}

std::vector<std::string> ZipReader::names() const {
  std::vector<std::string> names;
  for (const auto& [name, record] : records_) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

const ZipReader::Record& ZipReader::record(const std::string& name) const {
  auto found = records_.find(name);
  if (found == records_.end()) fail("has no record '" + name + "'");
  return found->second;
}

void ZipReader::read_at(std::uint64_t offset, void* to, std::uint64_t size) const {
  if (offset > bytes_ || size > bytes_ - offset) fail("is cut short");
  char* at = static_cast<char*>(to);
  while (size > 0) {
    ssize_t got = ::pread(file_, at, size, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(std::string("cannot be read (") + std::strerror(errno) + ")");
    if (got == 0) fail("is cut short");
    at += got;
    offset += static_cast<std::uint64_t>(got);
    size -= static_cast<std::uint64_t>(got);
  }
}

// The end record is the last record of the file; a comment of up to 64 KB may follow it.
void ZipReader::find_directory() {
  const std::uint64_t span = std::min(bytes_, end_bytes + max_comment);
  std::string tail(span, '\0');
  read_at(bytes_ - span, tail.data(), span);
  std::uint64_t at = span < end_bytes ? 0 : span - end_bytes + 1;
  while (at > 0 && number<std::uint32_t>(tail, at - 1) != end_signature) --at;
  if (at == 0) {
    bool legacy = bytes_ > 2 && tail.size() == bytes_ && tail[0] == '\x80';
    Error error(legacy ? "is in the format that torch wrote before 1.6"
                       : "is not a checkpoint, or is cut short");
    throw error.at(path_.string())
        .stage("checkpoint")
        .hint("A .pt file can be made again in Python: torch.save(torch.load(path), path)");
  }
  const std::uint64_t end = --at;
  std::uint64_t count = number<std::uint16_t>(tail, end + 10);
  std::uint64_t size = number<std::uint32_t>(tail, end + 12);
  std::uint64_t offset = number<std::uint32_t>(tail, end + 16);
  if (end >= locator64_bytes &&
      number<std::uint32_t>(tail, end - locator64_bytes) == locator64_signature) {
    std::string end64(end64_bytes, '\0');
    read_at(number<std::uint64_t>(tail, end - locator64_bytes + 8), end64.data(), end64_bytes);
    if (number<std::uint32_t>(end64, 0) != end64_signature) fail("has a damaged directory");
    count = number<std::uint64_t>(end64, 32);
    size = number<std::uint64_t>(end64, 40);
    offset = number<std::uint64_t>(end64, 48);
  }
  read_directory(offset, size, count);
}

void ZipReader::read_directory(std::uint64_t offset, std::uint64_t size, std::uint64_t count) {
  if (size > bytes_ || count > size / entry_bytes) fail("has a damaged directory");
  std::string directory(size, '\0');
  read_at(offset, directory.data(), size);
  std::uint64_t at = 0;
  for (std::uint64_t i = 0; i < count; ++i) at = read_entry(directory, at);
  if (records_.empty()) fail("holds nothing");
}

std::uint64_t ZipReader::read_entry(const std::string& directory, std::uint64_t at) {
  if (directory.size() - at < entry_bytes ||
      number<std::uint32_t>(directory, at) != entry_signature) {
    fail("has a damaged directory");
  }
  const auto method = number<std::uint16_t>(directory, at + 10);
  const auto packed = number<std::uint32_t>(directory, at + 20);
  const auto plain = number<std::uint32_t>(directory, at + 24);
  const std::uint64_t name_bytes = number<std::uint16_t>(directory, at + 28);
  const std::uint64_t extra_bytes = number<std::uint16_t>(directory, at + 30);
  const std::uint64_t comment_bytes = number<std::uint16_t>(directory, at + 32);
  Record record{.header = number<std::uint32_t>(directory, at + 42),
                .size = plain,
                .checksum = number<std::uint32_t>(directory, at + 16)};
  const std::uint64_t next = at + entry_bytes + name_bytes + extra_bytes + comment_bytes;
  if (next > directory.size()) fail("has a damaged directory");

  // Sizes and offsets of 4 GB and more are in the extra field; smaller ones are not.
  std::uint64_t extra = at + entry_bytes + name_bytes;
  const std::uint64_t extra_end = extra + extra_bytes;
  std::uint64_t packed64 = packed;
  while (extra_end - extra >= 4) {
    const auto tag = number<std::uint16_t>(directory, extra);
    const std::uint64_t field_end = extra + 4 + number<std::uint16_t>(directory, extra + 2);
    if (field_end > extra_end) break;  // LibTorch pads with bytes that are no field
    std::uint64_t field = extra + 4;
    auto take = [&](std::uint64_t& value, std::uint32_t stored) {
      if (stored != in_zip64) return;
      if (field_end - field < 8) fail("has a damaged directory");
      value = number<std::uint64_t>(directory, field);
      field += 8;
    };
    if (tag == 1) {
      take(record.size, plain);
      take(packed64, packed);
      take(record.header, number<std::uint32_t>(directory, at + 42));
    }
    extra = field_end;
  }
  std::string name = directory.substr(at + entry_bytes, name_bytes);
  if (method != 0 || packed64 != record.size) fail("has a compressed record, " + name);
  if (record.size > bytes_ || bytes_ - record.size < claimed_) fail("claims more than it holds");
  claimed_ += record.size;

  const std::size_t slash = name.find('/');
  const std::string folder = name.substr(0, slash == std::string::npos ? 0 : slash);
  if (folder.empty() || folder == "." || folder == "..") {
    fail("has a record outside its folder, " + name);
  }
  if (records_.empty()) folder_ = folder;
  if (folder != folder_) fail("has records in several folders");
  if (!records_.emplace(name.substr(slash + 1), record).second) {
    fail("has the record " + name + " twice");
  }
  return next;
}

void ZipReader::read(const std::string& name, void* to) const {
  const Record& wanted = record(name);
  std::string header(local_bytes, '\0');
  read_at(wanted.header, header.data(), local_bytes);
  if (number<std::uint32_t>(header, 0) != local_signature) fail("has a damaged record, " + name);
  const std::uint64_t name_bytes = number<std::uint16_t>(header, 26);
  std::string there(name_bytes, '\0');
  read_at(wanted.header + local_bytes, there.data(), name_bytes);
  if (there != folder_ + "/" + name) fail("has a damaged record, " + name);
  read_at(wanted.header + local_bytes + name_bytes + number<std::uint16_t>(header, 28), to,
          wanted.size);
  // PyTorch can be set to write no checksums; it then writes zeros.
  if (wanted.checksum == 0) return;
  if (crc32_z(0, static_cast<const Bytef*>(to), wanted.size) != wanted.checksum) {
    fail("is damaged: the checksum of " + name + " does not fit");
  }
}

std::string ZipReader::read(const std::string& name) const {
  std::string content(size(name), '\0');
  read(name, content.data());
  return content;
}

}  // namespace millrace::detail
