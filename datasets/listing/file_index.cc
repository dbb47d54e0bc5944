// The index file: a derived file with the columns of the FileTable as they are in memory. If it
// cannot be used, the folder is read again.
#include "derived_file.h"
#include "file_table.h"

#include <millrace/datasets/listing/printable.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <type_traits>

namespace millrace::detail {

namespace {

constexpr std::string_view index_kind = "MRFILES3";

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

// After one get() fails, all later ones fail: the caller checks once, at the end.
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

// The checksum does not protect against a file that was made on purpose: all positions are checked.
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

}  // namespace

std::string index_key(const FileListOptions& options) {
  std::string key = options.recursive ? "all " : "top ";
  for (const std::string& extension : options.extensions) key += extension + ",";
  return key;
}

std::optional<FileTable> read_index(const std::filesystem::path& path, const std::string& key) {
  const std::optional<std::string> payload = read_derived_file(path, index_kind);
  if (!payload) return std::nullopt;
  FileTable table;
  Reader reader(*payload);
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
  Status status = write_derived_file(path, index_kind, writer.bytes);
  if (status.ok()) return status;
  return Error("the index: " + status.error().reason()).at(printable(path)).stage("list");
}

}  // namespace millrace::detail
