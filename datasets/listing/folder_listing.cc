#include "folder_listing.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

namespace millrace::detail {

namespace {

using Kind = FolderItem::Kind;

struct FileHandle {
  explicit FileHandle(int file) : descriptor(file) {}
  ~FileHandle() {
    if (descriptor >= 0) ::close(descriptor);
  }
  FileHandle(const FileHandle&) = delete;
  FileHandle& operator=(const FileHandle&) = delete;
  int descriptor;
};

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

std::int64_t now_coarse_ns() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME_COARSE, &now);  // the clock of the file systems' time stamps
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

// On a file system with whole seconds, a second change within one second gives the same stamp.
std::int64_t clock_step_ns(const FolderStamp& stamp) {
  bool whole_seconds =
      stamp.modified_ns % 1'000'000'000 == 0 && stamp.changed_ns % 1'000'000'000 == 0;
  return whole_seconds ? 3'000'000'000 : 20'000'000;
}

Kind kind_of(const dirent& entry) {
  switch (entry.d_type) {
    case DT_REG:
      return Kind::file;
    case DT_DIR:
      return Kind::folder;
    case DT_LNK:
      return Kind::link;
    case DT_UNKNOWN:
      return Kind::unknown;
    default:
      return Kind::other;
  }
}

// In place, so that a million entries are not in memory twice. Overwrites `source(i)`.
template <typename Source>
void permute(std::vector<FolderItem>& items, Source source) {
  for (std::size_t start = 0; start < items.size(); ++start) {
    FolderItem held = items[start];
    std::size_t to = start;
    while (source(to) != start) {
      std::size_t from = source(to);
      items[to] = items[from];
      source(to) = static_cast<std::uint32_t>(to);
      to = from;
    }
    items[to] = held;
    source(to) = static_cast<std::uint32_t>(to);
  }
}

}  // namespace

void FolderListing::read(const std::filesystem::path& root, const FileListOptions& options) {
  const std::int64_t before = now_coarse_ns();
  std::unique_ptr<DIR, CloseFolder> folder(::opendir((root / prefix).c_str()));
  const int descriptor = folder ? ::dirfd(folder.get()) : -1;
  struct stat about {};
  if (descriptor < 0 || fstat(descriptor, &about) != 0) {
    error = errno;
    return;
  }
  stamp = FolderStamp::of(about);
  errno = 0;
  while (const dirent* entry = ::readdir(folder.get())) {
    std::string_view found = entry->d_name;
    FolderItem item{.begin = static_cast<std::uint32_t>(names.size()),
                    .length = static_cast<std::uint16_t>(found.size()),
                    .kind = kind_of(*entry)};
    item.wanted = options.extensions.empty() || has_extension(found, options.extensions);
    const bool may_be_folder = item.kind != Kind::file && item.kind != Kind::other;
    if (found != "." && found != ".." && (item.wanted || may_be_folder)) {
      names += found;
      items.push_back(item);
    }
    errno = 0;  // readdir() returns null for an error and for the end
  }
  error = errno;
  if (items.size() <= small) look_up(descriptor, options.check_files, 0, items.size());
  const bool unchanged = fstat(descriptor, &about) == 0 && FolderStamp::of(about) == stamp;
  const std::int64_t last = std::max(stamp.modified_ns, stamp.changed_ns);
  settled = unchanged && last + clock_step_ns(stamp) < before;
}

void FolderListing::look_up(const std::filesystem::path& root, const FileListOptions& options,
                            std::size_t begin, std::size_t end) {
  FileHandle folder(::open((root / prefix).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  look_up(folder.descriptor, options.check_files, begin, end);
}

void FolderListing::look_up(int folder, bool check_files, std::size_t begin, std::size_t end) {
  std::string text;
  for (std::size_t i = begin; i < end; ++i) {
    FolderItem& item = items[i];
    // Avoid stat calls: on a cold disk they take most of the time.
    if (item.kind == Kind::folder || (item.kind == Kind::file && !check_files)) continue;
    text.assign(name(item));
    struct stat about {};
    bool link = item.kind == Kind::link;
    if (item.kind == Kind::unknown &&
        fstatat(folder, text.c_str(), &about, AT_SYMLINK_NOFOLLOW) == 0) {
      link = S_ISLNK(about.st_mode);
    }
    if (fstatat(folder, text.c_str(), &about, 0) != 0) {
      item.kind = Kind::file;  // a broken link or a removed file: loading it fails
    } else if (S_ISDIR(about.st_mode)) {
      item.kind = link ? Kind::linked_folder : Kind::folder;
    } else {
      item.kind = Kind::file;
      item.bytes = S_ISREG(about.st_mode) ? about.st_size : -1;
      item.modified_ns = modified_ns_of(about);
    }
  }
}

// Compares names, with "/" added to folders: so the order over all folders is that of full paths.
bool FolderListing::comes_before(const FolderItem& a, const FolderItem& b) const {
  std::string_view x = name(a), y = name(b);
  std::size_t shared = std::min(x.size(), y.size());
  if (int order = std::memcmp(x.data(), y.data(), shared); order != 0) return order < 0;
  auto at = [&](std::string_view text, const FolderItem& item) {
    if (text.size() > shared) return static_cast<int>(static_cast<unsigned char>(text[shared]));
    return item.is_folder() ? '/' : -1;
  };
  return at(x, a) < at(y, b);
}

// The length of the common prefix of all names.
std::size_t FolderListing::common_start() const {
  std::string_view first = name(items[0]);
  for (const FolderItem& item : items) {
    std::string_view other = name(item);
    std::size_t most = std::min(first.size(), other.size()), same = 0;
    while (same < most && first[same] == other[same]) ++same;
    first = first.substr(0, same);
  }
  return first.size();
}

// The eight bytes after the common prefix decide almost every comparison.
void FolderListing::sort() {
  std::erase_if(items, [](const FolderItem& item) { return !item.is_folder() && !item.wanted; });
  items.shrink_to_fit();
  if (items.size() < 2) return;
  const std::size_t common = common_start();
  struct Keyed {
    std::uint64_t key = 0;
    std::uint32_t item = 0;
  };
  std::vector<Keyed> keyed(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    unsigned char next[8] = {};
    std::string_view rest = name(items[i]).substr(common);
    std::size_t n = rest.copy(reinterpret_cast<char*>(next), 8);
    if (n < 8 && items[i].is_folder()) next[n] = '/';
    for (unsigned char byte : next) keyed[i].key = keyed[i].key << 8 | byte;
    keyed[i].item = static_cast<std::uint32_t>(i);
  }
  std::sort(keyed.begin(), keyed.end(), [&](const Keyed& a, const Keyed& b) {
    if (a.key != b.key) return a.key < b.key;
    return comes_before(items[a.item], items[b.item]);
  });
  permute(items, [&](std::size_t i) -> std::uint32_t& { return keyed[i].item; });
}

FolderStamp FolderStamp::of(const struct stat& about) {
  return {about.st_dev, about.st_ino, modified_ns_of(about),
          about.st_ctim.tv_sec * 1'000'000'000 + about.st_ctim.tv_nsec};
}

std::int64_t modified_ns_of(const struct stat& about) {
  return about.st_mtim.tv_sec * 1'000'000'000 + about.st_mtim.tv_nsec;
}

}  // namespace millrace::detail
