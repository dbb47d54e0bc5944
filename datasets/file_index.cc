// The index file: a header with a checksum, then the columns of the table as they are in memory.
// It is only ever a shortcut: one that is damaged, cut short or made for something else is not
// used, and the folder is read as if there were none.
#include "file_table.h"

#include <millrace/datasets/printable.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <span>
#include <type_traits>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace millrace {

namespace {

constexpr char magic[8] = {'M', 'R', 'F', 'I', 'L', 'E', 'S', '2'};

struct Header {
  char magic[8];
  std::uint64_t payload_bytes, checksum;
};

std::uint64_t checksum_of(std::string_view bytes) {
  std::uint64_t sum = bytes.size();
  while (!bytes.empty()) {
    std::uint64_t word = 0;
    std::size_t n = std::min(bytes.size(), sizeof word);
    std::memcpy(&word, bytes.data(), n);
    sum = (sum ^ word) * 0x9E3779B97F4A7C15U;
    sum ^= sum >> 29;
    bytes.remove_prefix(n);
  }
  return sum;
}

class Writer {
 public:
  template <typename T>
  void put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void put(const std::string& text) {
    put(static_cast<std::uint64_t>(text.size()));
    bytes += text;
  }
  template <typename T>
  void put(const std::vector<T>& column) {
    put(static_cast<std::uint64_t>(column.size()));
    bytes.append(reinterpret_cast<const char*>(column.data()), column.size() * sizeof(T));
  }
  std::string bytes;
};

// Every get() fails once one has: the caller asks at the end.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}
  bool ok() const { return ok_; }
  bool at_end() const { return rest_.empty(); }

  template <typename T>
  void get(T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (take(sizeof value)) std::memcpy(&value, taken_.data(), sizeof value);
  }
  void get(std::string& text) {
    std::uint64_t size = 0;
    get(size);
    if (take(size)) text.assign(taken_);
  }
  template <typename T>
  void get(std::vector<T>& column) {
    std::uint64_t size = 0;
    get(size);
    if (!ok_ || size > rest_.size() / sizeof(T) || !take(size * sizeof(T))) {
      ok_ = false;
      return;
    }
    column.resize(size);
    if (size > 0) std::memcpy(column.data(), taken_.data(), taken_.size());
  }

 private:
  bool take(std::uint64_t bytes) {
    ok_ = ok_ && bytes <= rest_.size();
    if (!ok_) return false;
    taken_ = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return true;
  }
  std::string_view rest_, taken_;
  bool ok_ = true;
};

bool stays_below(const FolderEntry& folder) {
  std::string path = "/" + folder.prefix;
  return !folder.prefix.starts_with('/') && path.ends_with('/') &&
         path.find("/../") == std::string::npos && path.find('\0') == std::string::npos;
}

// What the checksum cannot promise: that whoever wrote the file meant well.
bool makes_sense(const FileTable& table) {
  std::size_t files = table.size();
  auto no_name = std::ranges::adjacent_find(table.name_begin, std::greater_equal<>());
  return !table.folders.empty() && table.name_begin.size() == files + 1 &&
         (table.bytes.empty() || table.bytes.size() == files) &&
         table.modified_ns.size() == table.bytes.size() && table.name_begin[0] == 0 &&
         table.name_begin.back() == table.names.size() && no_name == table.name_begin.end() &&
         table.names.find('/') == std::string::npos &&
         std::ranges::all_of(table.folders, stays_below) &&
         std::ranges::all_of(table.folder_of,
                             [&](std::uint32_t folder) { return folder < table.folders.size(); });
}

bool read_all(const std::filesystem::path& path, std::string& bytes) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return false;
  struct stat about {};
  bool ok = fstat(file, &about) == 0 && S_ISREG(about.st_mode);
  if (ok) bytes.resize(static_cast<std::size_t>(about.st_size));
  for (std::size_t done = 0; ok && done < bytes.size();) {
    ssize_t n = ::read(file, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    ok = n > 0;
    done += ok ? static_cast<std::size_t>(n) : 0;
  }
  ::close(file);
  return ok;
}

}  // namespace

std::string index_key(const FileListOptions& options) {
  std::string key = options.recursive ? "all " : "top ";
  for (const std::string& extension : options.extensions) key += extension + ",";
  return key;
}

std::optional<FileTable> read_index(const std::filesystem::path& path, const std::string& key) {
  std::string bytes;
  Header header{};
  if (!read_all(path, bytes) || bytes.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof header);
  std::string_view payload = std::string_view(bytes).substr(sizeof header);
  if (std::memcmp(header.magic, magic, sizeof magic) != 0 ||
      header.payload_bytes != payload.size() || header.checksum != checksum_of(payload)) {
    return std::nullopt;
  }
  FileTable table;
  Reader reader(payload);
  std::string found_key;
  std::uint64_t folders = 0, left_out = 0;
  reader.get(found_key);
  if (found_key != key) return std::nullopt;
  std::string root;
  reader.get(root);
  table.root = root;
  reader.get(folders);
  while (reader.ok() && table.folders.size() < folders) {
    FolderEntry& folder = table.folders.emplace_back();
    reader.get(folder.prefix);
    reader.get(folder.stamp);
    reader.get(folder.settled);
  }
  reader.get(left_out);
  while (reader.ok() && table.left_out.size() < left_out) {
    LeftOut& entry = table.left_out.emplace_back();
    reader.get(entry.source);
    reader.get(entry.reason);
  }
  reader.get(table.folder_of);
  reader.get(table.name_begin);
  reader.get(table.bytes);
  reader.get(table.modified_ns);
  reader.get(table.names);
  if (!reader.ok() || !reader.at_end() || !makes_sense(table)) return std::nullopt;
  table.from_index = true;
  return table;
}

Status write_index(const std::filesystem::path& path, const std::string& key,
                   const FileTable& table) {
  Writer writer;
  writer.bytes.reserve(table.names.size() + table.size() * 24 + table.folders.size() * 128 + 4096);
  writer.put(Header{});
  writer.put(key);
  writer.put(table.root.native());
  writer.put(static_cast<std::uint64_t>(table.folders.size()));
  for (const FolderEntry& folder : table.folders) {
    writer.put(folder.prefix);
    writer.put(folder.stamp);
    writer.put(folder.settled);
  }
  writer.put(static_cast<std::uint64_t>(table.left_out.size()));
  for (const LeftOut& entry : table.left_out) {
    writer.put(entry.source);
    writer.put(entry.reason);
  }
  writer.put(table.folder_of);
  writer.put(table.name_begin);
  writer.put(table.bytes);
  writer.put(table.modified_ns);
  writer.put(table.names);
  std::string_view payload = std::string_view(writer.bytes).substr(sizeof(Header));
  Header header{{}, payload.size(), checksum_of(payload)};
  std::memcpy(header.magic, magic, sizeof magic);
  std::memcpy(writer.bytes.data(), &header, sizeof header);

  std::string beside = path.string() + ".XXXXXX";
  const int file = ::mkostemp(beside.data(), O_CLOEXEC);
  bool ok = file >= 0;
  for (std::string_view rest = writer.bytes; ok && !rest.empty();) {
    ssize_t n = ::write(file, rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    ok = n > 0;
    if (ok) rest.remove_prefix(static_cast<std::size_t>(n));
  }
  // Not synced: a torn file fails its checksum, and the folder is read again.
  ok = ok && ::fchmod(file, 0644) == 0 && ::rename(beside.c_str(), path.c_str()) == 0;
  Status status;
  if (!ok) {
    status = Error(std::string("cannot write the index (") + std::strerror(errno) + ")")
                 .at(printable(path))
                 .stage("list");
    if (file >= 0) ::unlink(beside.c_str());
  }
  if (file >= 0) ::close(file);
  return status;
}

}  // namespace millrace
