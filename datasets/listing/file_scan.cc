// Reads a folder tree level by level. The folders of a level are read in parallel; the next level
// is decided by one thread, so the result does not depend on the number of threads.
#include "folder_listing.h"

#include <millrace/datasets/listing/printable.h>
#include <millrace/pipeline/base/parallel_for.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <set>
#include <utility>

#include <sys/stat.h>

namespace millrace::detail {

namespace {

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
  void read_frontier() {
    auto each = [&](auto&& function) {
      parallel_for(pool_, static_cast<std::int64_t>(frontier_.size()), [&](std::int64_t i) {
        function(listings_[frontier_[static_cast<std::size_t>(i)]]);
      });
    };
    each([&](FolderListing& listing) { listing.read(root_, options_); });
    look_up_large();
    each([&](FolderListing& listing) { listing.sort(); });
  }

  void look_up_large() {
    struct Part {
      FolderListing* listing;
      std::size_t begin, end;
    };
    constexpr std::size_t step = FolderListing::small;
    std::vector<Part> parts;
    for (std::size_t index : frontier_) {
      FolderListing& listing = listings_[index];
      if (listing.items.size() <= step) continue;
      for (std::size_t i = 0; i < listing.items.size(); i += step) {
        parts.push_back({&listing, i, std::min(i + step, listing.items.size())});
      }
    }
    parallel_for(pool_, static_cast<std::int64_t>(parts.size()), [&](std::int64_t i) {
      const Part& part = parts[static_cast<std::size_t>(i)];
      part.listing->look_up(root_, options_, part.begin, part.end);
    });
  }

  // Collects the subfolders in order. If two paths lead to the same folder, the first one counts,
  // whatever the number of threads.
  void advance() {
    std::vector<std::size_t> next;
    for (std::size_t index : frontier_) {
      FolderListing& listing = listings_[index];
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
      FolderListing& listing = listings_[index];
      const FolderItem& item = listing.items[i];
      if (!item.is_folder()) continue;
      std::string below = listing.prefix;
      below += listing.name(item);
      if (item.wanted && !options_.extensions.empty()) {
        leave_out(below, "a folder, although its name ends like a file's");
      }
      listing.children.push_back(listings_.size());
      bool linked = item.kind == FolderItem::Kind::linked_folder;
      listings_.emplace_back().prefix = below + "/";
      if (!options_.recursive) continue;
      (linked ? links_ : next).push_back(listings_.size() - 1);
    }
  }

  // Links to folders come after all real folders, so that a folder is listed under its real path.
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
    for (const FolderListing& listing : listings_) {
      for (const FolderItem& item : listing.items) {
        if (item.is_folder() || listing.repeated) continue;
        ++files;
        name_bytes += item.length;
      }
    }
    if (name_bytes > UINT32_MAX || listings_.size() > UINT32_MAX) {
      throw Error("more files than a list can hold").at(printable(root_)).kind(ErrorKind::usage);
    }
    table.reserve(files, name_bytes, options_.check_files);
    struct Place {
      std::size_t listing, item = 0, child = 0;
      std::uint32_t folder = 0;
    };
    std::vector<Place> stack;
    auto enter = [&](std::size_t index) {
      const FolderListing& listing = listings_[index];
      if (listing.repeated || (index != 0 && listing.stamp == FolderStamp{})) return;
      stack.push_back({index, 0, 0, static_cast<std::uint32_t>(table.folders.size())});
      table.folders.push_back({listing.prefix, listing.stamp, listing.settled});
    };
    enter(0);
    while (!stack.empty()) {
      Place& place = stack.back();
      FolderListing& listing = listings_[place.listing];
      if (place.item == listing.items.size()) {
        listing.items = {};
        listing.names = {};
        stack.pop_back();
        continue;
      }
      const FolderItem& item = listing.items[place.item++];
      if (!item.is_folder()) {
        table.add(place.folder, listing.name(item));
        if (options_.check_files) {
          table.bytes.push_back(item.bytes);
          table.modified_ns.push_back(item.modified_ns);
        }
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
  std::deque<FolderListing> listings_;
  std::vector<std::size_t> frontier_, links_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> visited_;
  std::vector<LeftOut> left_out_;
  bool incomplete_ = false;
};

}  // namespace

FileTable scan_files(const std::filesystem::path& root, const FileListOptions& options,
                     Pool& pool) {
  return Scan(root, options, pool).run();
}

}  // namespace millrace::detail
