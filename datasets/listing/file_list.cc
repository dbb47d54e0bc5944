#include "file_table.h"

#include <millrace/datasets/listing/file_list.h>
#include <millrace/datasets/listing/printable.h>
#include <millrace/pipeline/base/log.h>
#include <millrace/pipeline/base/parallel_for.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <thread>

#include <sys/stat.h>
#include <unistd.h>

namespace millrace {

using namespace detail;

namespace {

namespace fs = std::filesystem;
constexpr std::size_t worth_remembering = 50'000;

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

std::vector<std::string> tidy_extensions(std::vector<std::string> extensions) {
  for (std::string& extension : extensions) {
    if (extension.starts_with('.')) extension.erase(0, 1);
    std::ranges::transform(extension, extension.begin(), lower);
  }
  std::ranges::sort(extensions);
  extensions.erase(std::unique(extensions.begin(), extensions.end()), extensions.end());
  return extensions;
}

std::string hex(std::uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

// Possible paths of a folder's index, the preferred one first.
std::vector<fs::path> index_places(const fs::path& root, const FileListOptions& options) {
  if (!options.index_path.empty()) return {options.index_path};
  std::error_code error;
  fs::path whole = fs::canonical(root, error);
  if (error) return {};
  std::string tail = hex(std::hash<std::string>{}(index_key(options))).substr(0, 8);
  std::vector<fs::path> places;
  if (whole.has_filename()) {
    places.push_back(whole.parent_path() /
                     ("." + whole.filename().string() + "." + tail + ".millrace-index"));
  }
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  if ((cache != nullptr && *cache != '\0') || (home != nullptr && *home != '\0')) {
    fs::path folder =
        cache != nullptr && *cache != '\0' ? fs::path(cache) : fs::path(home) / ".cache";
    places.push_back(folder / "millrace" /
                     (hex(std::hash<std::string>{}(whole.string())) + "." + tail + ".index"));
  }
  return places;
}

bool same_stamp(const fs::path& root, const FolderEntry& folder) {
  struct stat about {};
  return ::stat((root / folder.prefix).c_str(), &about) == 0 &&
         FolderStamp::of(about) == folder.stamp;
}

bool still_right(const FileTable& table, Pool& pool) {
  std::atomic<bool> right{true};
  auto count = static_cast<std::int64_t>(table.folders.size());
  constexpr std::int64_t chunk = 256;
  parallel_for(pool, (count + chunk - 1) / chunk, [&](std::int64_t part) {
    for (std::int64_t i = part * chunk; i < std::min(count, (part + 1) * chunk) && right; ++i) {
      const FolderEntry& folder = table.folders[static_cast<std::size_t>(i)];
      if (!folder.settled || !same_stamp(table.root, folder)) right = false;
    }
  });
  return right;
}

struct Details {
  std::int64_t bytes = -1;
  std::int64_t modified_ns = 0;
};

Details look_up(const FileTable& table, std::size_t index) {
  struct stat about {};
  if (::stat(table.path(index).c_str(), &about) != 0) return {};
  return {S_ISREG(about.st_mode) ? about.st_size : -1, modified_ns_of(about)};
}

// Looks up the sizes and times of all files. Counts the files for which they changed.
void refresh_files(FileTable& table, Pool& pool) {
  const auto count = static_cast<std::int64_t>(table.size());
  const bool known = table.has_details();
  table.bytes.resize(table.size(), -1);
  table.modified_ns.resize(table.size(), 0);
  std::atomic<std::int64_t> changed{0};
  constexpr std::int64_t chunk = 4096;
  parallel_for(pool, (count + chunk - 1) / chunk, [&](std::int64_t part) {
    for (std::int64_t i = part * chunk; i < std::min(count, (part + 1) * chunk); ++i) {
      auto at = static_cast<std::size_t>(i);
      Details now = look_up(table, at);
      if (now.bytes != table.bytes[at] || now.modified_ns != table.modified_ns[at]) ++changed;
      table.bytes[at] = now.bytes;
      table.modified_ns[at] = now.modified_ns;
    }
  });
  table.changed_files = known ? changed.load() : 0;
}

// A folder that changed right before it was read is believed if it still has the same stamp after
// the clock of the file system has advanced.
void settle(FileTable& table) {
  auto unsettled = [](const FolderEntry& folder) { return !folder.settled; };
  if (std::ranges::none_of(table.folders, unsettled)) return;
  std::this_thread::sleep_for(std::chrono::milliseconds(25));
  for (FolderEntry& folder : table.folders) {
    bool fine_clock = folder.stamp.modified_ns % 1'000'000'000 != 0;
    if (!folder.settled && fine_clock) folder.settled = same_stamp(table.root, folder);
  }
}

void remember(FileTable& table, const FileListOptions& options) {
  Status status = Error("there is no place for it");
  for (const fs::path& place : index_places(table.root, options)) {
    std::error_code ignored;
    if (place.has_parent_path()) fs::create_directories(place.parent_path(), ignored);
    status = write_index(place, index_key(options), table);
    if (status.ok()) return;
  }
  log(options.index == FileListOptions::Index::always ? LogLevel::warning : LogLevel::debug,
      printable(table.root) + ": the list of files is not remembered: " + status.error().what());
}

FileTable list_files(const fs::path& folder, const FileListOptions& options, Pool& pool) {
  using Index = FileListOptions::Index;
  if (options.index != Index::never) {
    for (const fs::path& place : index_places(folder, options)) {
      std::optional<FileTable> known = read_index(place, index_key(options));
      if (!known) continue;
      // The entries of left_out have full paths, which depend on how the folder was spelled.
      if (!known->left_out.empty() && known->root != folder) continue;
      known->root = folder;
      if (!still_right(*known, pool)) continue;
      if (options.check_files) {
        const bool had_details = known->has_details();
        refresh_files(*known, pool);
        if (!had_details || known->changed_files > 0) remember(*known, options);
      } else {
        known->bytes.clear();
        known->modified_ns.clear();
      }
      return std::move(*known);
    }
  }
  FileTable table = scan_files(folder, options, pool);
  bool write = options.index == Index::always ||
               (options.index == Index::automatic && table.size() >= worth_remembering);
  // If a folder becomes readable later, no stamp changes.
  if (write && table.complete) {
    settle(table);
    remember(table, options);
  }
  return table;
}

}  // namespace

void detail::FileTable::reserve(std::size_t files, std::size_t name_bytes, bool details) {
  folder_of.reserve(files);
  name_begin.reserve(files + 1);
  names.reserve(name_bytes);
  if (details) {
    bytes.reserve(files);
    modified_ns.reserve(files);
  }
}

void detail::FileTable::add(std::uint32_t folder, std::string_view name) {
  folder_of.push_back(folder);
  names += name;
  name_begin.push_back(static_cast<std::uint32_t>(names.size()));
}

std::string detail::FileTable::path(std::size_t i) const {
  std::string whole = (root / folders[folder_of[i]].prefix).native();
  return whole += name(i);
}

FileList::FileList(const fs::path& folder, FileListOptions options) {
  options.extensions = tidy_extensions(std::move(options.extensions));
  auto pool = options.pool ? options.pool : Pool::shared();
  table_ = std::make_shared<const FileTable>(list_files(folder, options, *pool));
}

std::int64_t FileList::size() const {
  return static_cast<std::int64_t>(table_->size());
}
const fs::path& FileList::folder() const {
  return table_->root;
}
std::string_view FileList::name(std::int64_t index) const {
  return table_->name(static_cast<std::size_t>(index));
}
std::string FileList::relative(std::int64_t index) const {
  std::string path = table_->folders[table_->folder_of[static_cast<std::size_t>(index)]].prefix;
  return path += name(index);
}
std::int64_t FileList::bytes(std::int64_t index) const {
  auto at = static_cast<std::size_t>(index);
  return table_->has_details() ? table_->bytes[at] : look_up(*table_, at).bytes;
}
std::int64_t FileList::modified_ns(std::int64_t index) const {
  auto at = static_cast<std::size_t>(index);
  return table_->has_details() ? table_->modified_ns[at] : look_up(*table_, at).modified_ns;
}
const std::vector<LeftOut>& FileList::left_out() const {
  return table_->left_out;
}
std::int64_t FileList::folders() const {
  return static_cast<std::int64_t>(table_->folders.size());
}
std::int64_t FileList::folder_index(std::int64_t index) const {
  return table_->folder_of[static_cast<std::size_t>(index)];
}
std::int64_t FileList::changed_files() const {
  return table_->changed_files;
}
bool FileList::from_index() const {
  return table_->from_index;
}

FileList FileList::only(const std::vector<std::string>& wanted) const {
  std::vector<std::string> extensions = tidy_extensions(wanted);
  auto part = std::make_shared<FileTable>();
  part->root = table_->root;
  part->folders = table_->folders;
  part->left_out = table_->left_out;
  part->from_index = table_->from_index;
  for (std::size_t i = 0; i < table_->size(); ++i) {
    if (!has_extension(table_->name(i), extensions)) continue;
    part->add(table_->folder_of[i], table_->name(i));
    if (!table_->has_details()) continue;
    part->bytes.push_back(table_->bytes[i]);
    part->modified_ns.push_back(table_->modified_ns[i]);
  }
  return FileList(std::move(part));
}

std::int64_t FileList::memory_bytes() const {
  const FileTable& t = *table_;
  std::size_t bytes = sizeof t + t.folder_of.capacity() * 4 + t.name_begin.capacity() * 4 +
                      (t.bytes.capacity() + t.modified_ns.capacity()) * 8 + t.names.capacity();
  for (const FolderEntry& folder : t.folders) bytes += sizeof folder + folder.prefix.capacity();
  return static_cast<std::int64_t>(bytes);
}

bool has_extension(std::string_view name, const std::vector<std::string>& extensions) {
  std::string_view last = name.substr(stem_of(name).size());
  if (last.size() < 2) return false;
  last.remove_prefix(1);
  return std::ranges::any_of(extensions, [&](const std::string& extension) {
    return std::ranges::equal(last, extension, {}, lower, lower);
  });
}

std::string_view stem_of(std::string_view name) {
  std::size_t slash = name.rfind('/');
  std::size_t dot = name.rfind('.');
  bool hidden = dot == 0 || (slash != std::string_view::npos && dot == slash + 1);
  bool in_folder = slash != std::string_view::npos && dot != std::string_view::npos && dot < slash;
  return dot == std::string_view::npos || hidden || in_folder ? name : name.substr(0, dot);
}

}  // namespace millrace
