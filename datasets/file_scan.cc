#include "file_table.h"

#include <millrace/datasets/printable.h>
#include <millrace/pipeline/parallel_for.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <deque>
#include <memory>
#include <set>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

namespace millrace {

namespace {

enum class Kind : std::uint8_t { file, folder, link, unknown, linked_folder, other };

struct Item {
  std::uint32_t begin = 0;  // of the name, in its folder's names
  std::uint16_t length = 0;
  Kind kind = Kind::unknown;
  bool wanted = false;  // its extension is one of those asked for
  std::int64_t bytes = -1;
  std::int64_t modified_ns = 0;
};

// One folder while it is read.
struct Listing {
  std::string prefix;
  FolderStamp stamp;
  bool settled = false;
  int error = 0;
  bool repeated = false;  // listed under another path
  std::string names;
  std::vector<Item> items;
  std::vector<std::size_t> children;  // listings, by the order of the items that are folders

  std::string_view name(const Item& item) const {
    return std::string_view(names).substr(item.begin, item.length);
  }
};

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
  clock_gettime(CLOCK_REALTIME_COARSE, &now);  // the clock that file systems stamp with
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

// Where the file system counts whole seconds, a change within the same one cannot be seen.
std::int64_t clock_step_ns(const FolderStamp& stamp) {
  bool whole_seconds =
      stamp.modified_ns % 1'000'000'000 == 0 && stamp.changed_ns % 1'000'000'000 == 0;
  return whole_seconds ? 3'000'000'000 : 20'000'000;
}

class Scan {
 public:
  Scan(const std::filesystem::path& root, const FileListOptions& options, Pool& pool)
      : root_(root), options_(options), pool_(pool) {}

  FileTable run() {
    listings_.emplace_back();
    frontier_ = {0};
    while (!frontier_.empty()) {
      read_frontier();
      advance();
      if (frontier_.empty()) follow_links();
    }
    return flatten();
  }

 private:
  static constexpr std::size_t chunk = 4096;

  void read_frontier() {
    auto each = [&](auto&& function) {
      parallel_for(pool_, static_cast<std::int64_t>(frontier_.size()), [&](std::int64_t i) {
        function(listings_[frontier_[static_cast<std::size_t>(i)]]);
      });
    };
    each([&](Listing& listing) { read(listing); });
    look_up_large();
    each([&](Listing& listing) { sort(listing); });
  }

  void read(Listing& listing) const {
    std::int64_t before = now_coarse_ns();
    std::unique_ptr<DIR, CloseFolder> folder(::opendir((root_ / listing.prefix).c_str()));
    const int descriptor = folder ? ::dirfd(folder.get()) : -1;
    struct stat about {};
    if (descriptor < 0 || fstat(descriptor, &about) != 0) {
      listing.error = errno;
      return;
    }
    listing.stamp = FolderStamp::of(about);
    errno = 0;
    while (const dirent* entry = ::readdir(folder.get())) {
      add(listing, *entry);
      errno = 0;  // the only way to tell an error from the end
    }
    listing.error = errno;
    listing.items.shrink_to_fit();
    if (listing.items.size() <= chunk) look_up(listing, descriptor, 0, listing.items.size());
    bool unchanged = fstat(descriptor, &about) == 0 && FolderStamp::of(about) == listing.stamp;
    listing.settled = unchanged && std::max(listing.stamp.modified_ns, listing.stamp.changed_ns) +
                                           clock_step_ns(listing.stamp) <
                                       before;
  }

  void add(Listing& listing, const dirent& entry) const {
    std::string_view name = entry.d_name;
    if (name == "." || name == "..") return;
    Item item{.begin = static_cast<std::uint32_t>(listing.names.size()),
              .length = static_cast<std::uint16_t>(name.size())};
    switch (entry.d_type) {
      case DT_REG:
        item.kind = Kind::file;
        break;
      case DT_DIR:
        item.kind = Kind::folder;
        break;
      case DT_LNK:
        item.kind = Kind::link;
        break;
      case DT_UNKNOWN:
        break;
      default:
        item.kind = Kind::other;
    }
    item.wanted = options_.extensions.empty() || has_extension(name, options_.extensions);
    bool may_be_folder = item.kind != Kind::file && item.kind != Kind::other;
    if (!item.wanted && !may_be_folder) return;
    listing.names += name;
    listing.items.push_back(item);
  }

  // Sizes and times, and what links and unknown entries are. Large folders are shared out.
  void look_up_large() {
    struct Part {
      Listing* listing;
      std::size_t begin, end;
    };
    std::vector<Part> parts;
    for (std::size_t index : frontier_) {
      Listing& listing = listings_[index];
      if (listing.items.size() <= chunk) continue;
      for (std::size_t i = 0; i < listing.items.size(); i += chunk) {
        parts.push_back({&listing, i, std::min(i + chunk, listing.items.size())});
      }
    }
    parallel_for(pool_, static_cast<std::int64_t>(parts.size()), [&](std::int64_t i) {
      Part& part = parts[static_cast<std::size_t>(i)];
      FileHandle folder(
          ::open((root_ / part.listing->prefix).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      look_up(*part.listing, folder.descriptor, part.begin, part.end);
    });
  }

  static void look_up(Listing& listing, int folder, std::size_t begin, std::size_t end) {
    char name[256];
    for (std::size_t i = begin; i < end; ++i) {
      Item& item = listing.items[i];
      if (item.kind == Kind::folder) continue;
      std::string_view text = listing.name(item);
      text.copy(name, sizeof name - 1);
      name[text.size()] = '\0';
      struct stat about {};
      bool link = item.kind == Kind::link;
      if (item.kind == Kind::unknown && fstatat(folder, name, &about, AT_SYMLINK_NOFOLLOW) == 0) {
        link = S_ISLNK(about.st_mode);
      }
      if (fstatat(folder, name, &about, 0) != 0) {
        item.kind = Kind::file;  // a broken link, or gone: loading it will tell
      } else if (S_ISDIR(about.st_mode)) {
        item.kind = link ? Kind::linked_folder : Kind::folder;
      } else {
        item.kind = Kind::file;
        item.bytes = S_ISREG(about.st_mode) ? about.st_size : -1;
        item.modified_ns = modified_ns_of(about);
      }
    }
  }

  // By name, where a folder counts as "name/": so the order over all folders is that of the whole
  // paths. Eight bytes after what all names share decide almost every comparison.
  static void sort(Listing& listing) {
    std::erase_if(listing.items,
                  [](const Item& item) { return item.kind == Kind::file && !item.wanted; });
    std::vector<Item>& items = listing.items;
    if (items.size() < 2) return;
    auto is_folder = [](const Item& item) { return item.kind != Kind::file; };
    auto less = [&](const Item& a, const Item& b) {
      std::string_view x = listing.name(a), y = listing.name(b);
      std::size_t shared = std::min(x.size(), y.size());
      if (int order = std::memcmp(x.data(), y.data(), shared); order != 0) return order < 0;
      auto at = [&](std::string_view text, const Item& item) {
        if (text.size() > shared) return static_cast<int>(static_cast<unsigned char>(text[shared]));
        return is_folder(item) ? '/' : -1;
      };
      return at(x, a) < at(y, b);
    };
    std::string_view first = listing.name(items[0]);
    std::size_t common = first.size();
    for (const Item& item : items) {
      std::string_view name = listing.name(item);
      auto differs = std::mismatch(
          first.begin(), first.begin() + static_cast<std::ptrdiff_t>(std::min(common, name.size())),
          name.begin());
      common = static_cast<std::size_t>(differs.first - first.begin());
    }
    struct Keyed {
      std::uint64_t key;
      std::uint32_t item;
    };
    std::vector<Keyed> keyed(items.size());
    for (std::size_t i = 0; i < items.size(); ++i) {
      unsigned char next[8] = {};
      std::string_view rest = listing.name(items[i]).substr(common);
      std::size_t n = rest.copy(reinterpret_cast<char*>(next), 8);
      if (n < 8 && is_folder(items[i])) next[n] = '/';
      std::uint64_t key = 0;
      for (unsigned char byte : next) key = key << 8 | byte;
      keyed[i] = {key, static_cast<std::uint32_t>(i)};
    }
    std::sort(keyed.begin(), keyed.end(), [&](const Keyed& a, const Keyed& b) {
      return a.key != b.key ? a.key < b.key : less(items[a.item], items[b.item]);
    });
    permute(items, [&](std::size_t i) -> std::uint32_t& { return keyed[i].item; });
  }

  // In place, so that a million entries are not in memory twice; `source(i)` is used up.
  template <typename Source>
  static void permute(std::vector<Item>& items, Source source) {
    for (std::size_t start = 0; start < items.size(); ++start) {
      Item held = items[start];
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

  // From what was just read to the folders below it, in order, so that which of two paths to the
  // same folder counts does not depend on threads.
  void advance() {
    std::vector<std::size_t> next;
    for (std::size_t index : frontier_) {
      Listing& listing = listings_[index];
      if (listing.error != 0) {
        if (listing.prefix.empty()) refuse(listing.error);
        incomplete_ = true;
        leave_out(listing.prefix,
                  std::string("the folder cannot be read (") + std::strerror(listing.error) + ")");
      }
      if (!visited_.insert({listing.stamp.device, listing.stamp.inode}).second &&
          listing.error == 0) {
        leave_out(listing.prefix, "the folder is listed already under another path");
        listing.repeated = true;
        continue;
      }
      descend(index, next);
    }
    frontier_ = std::move(next);
  }

  void descend(std::size_t index, std::vector<std::size_t>& next) {
    for (std::size_t i = 0; i < listings_[index].items.size(); ++i) {
      Listing& listing = listings_[index];
      const Item& item = listing.items[i];
      if (item.kind == Kind::file) continue;
      std::string below = listing.prefix;
      below += listing.name(item);
      if (item.wanted && !options_.extensions.empty()) {
        leave_out(below, "a folder, although its name ends like a file's");
      }
      listing.children.push_back(listings_.size());
      bool linked = item.kind == Kind::linked_folder;
      listings_.emplace_back().prefix = below + "/";
      if (!options_.recursive) continue;
      (linked ? links_ : next).push_back(listings_.size() - 1);
    }
  }

  // Links to folders come after all real folders, so that a folder is listed under its own path.
  void follow_links() {
    std::ranges::sort(links_, {}, [&](std::size_t i) { return listings_[i].prefix; });
    for (std::size_t index : links_) {
      struct stat about {};
      if (::stat((root_ / listings_[index].prefix).c_str(), &about) == 0 &&
          visited_.contains({about.st_dev, about.st_ino})) {
        leave_out(listings_[index].prefix, "a link to a folder that is listed already");
        continue;
      }
      frontier_.push_back(index);
    }
    links_.clear();
  }

  void leave_out(std::string below, std::string reason) {
    if (below.ends_with('/')) below.pop_back();
    left_out_.push_back({printable(root_ / below), std::move(reason)});
  }

  [[noreturn]] void refuse(int error) const {
    throw Error(error == ENOENT ? "the folder does not exist"
                : error == ENOTDIR
                    ? "not a folder"
                    : std::string("the folder cannot be read (") + std::strerror(error) + ")")
        .at(printable(root_))
        .stage("list")
        .kind(ErrorKind::usage);
  }

  FileTable flatten() {
    FileTable table;
    table.root = root_;
    std::size_t files = 0, name_bytes = 0;
    for (const Listing& listing : listings_) {
      for (const Item& item : listing.items) {
        if (item.kind != Kind::file || listing.repeated) continue;
        ++files;
        name_bytes += item.length;
      }
    }
    if (name_bytes > UINT32_MAX || listings_.size() > UINT32_MAX) {
      throw Error("more files than a list can hold").at(printable(root_)).kind(ErrorKind::usage);
    }
    table.reserve(files, name_bytes);
    struct Place {
      std::size_t listing, item = 0, child = 0;
      std::uint32_t folder = 0;
    };
    std::vector<Place> stack;
    auto enter = [&](std::size_t index) {
      const Listing& listing = listings_[index];
      if (listing.repeated || (index != 0 && listing.stamp == FolderStamp{})) return;
      stack.push_back({index, 0, 0, static_cast<std::uint32_t>(table.folders.size())});
      table.folders.push_back({listing.prefix, listing.stamp, listing.settled});
    };
    enter(0);
    while (!stack.empty()) {
      Place& place = stack.back();
      Listing& listing = listings_[place.listing];
      if (place.item == listing.items.size()) {
        listing.items = {};
        listing.names = {};
        stack.pop_back();
        continue;
      }
      const Item& item = listing.items[place.item++];
      if (item.kind == Kind::file) {
        table.add(place.folder, listing.name(item), item.bytes, item.modified_ns);
      } else {
        enter(listing.children[place.child++]);
      }
    }
    std::ranges::sort(left_out_, {}, &LeftOut::source);
    table.left_out = std::move(left_out_);
    table.complete = !incomplete_;
    return table;
  }

  const std::filesystem::path& root_;
  const FileListOptions& options_;
  Pool& pool_;
  std::deque<Listing> listings_;
  std::vector<std::size_t> frontier_, links_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> visited_;
  std::vector<LeftOut> left_out_;
  bool incomplete_ = false;
};

}  // namespace

FolderStamp FolderStamp::of(const struct stat& about) {
  return {about.st_dev, about.st_ino, modified_ns_of(about),
          about.st_ctim.tv_sec * 1'000'000'000 + about.st_ctim.tv_nsec};
}

std::int64_t modified_ns_of(const struct stat& about) {
  return about.st_mtim.tv_sec * 1'000'000'000 + about.st_mtim.tv_nsec;
}

FileTable scan_files(const std::filesystem::path& root, const FileListOptions& options,
                     Pool& pool) {
  return Scan(root, options, pool).run();
}

}  // namespace millrace
