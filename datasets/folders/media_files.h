// Private: listing, messages and decoder pools that all folder data sets share.
#pragma once

#include <millrace/datasets/folders/pixel_size.h>
#include <millrace/datasets/listing/file_list.h>
#include <millrace/decoders/image/image.h>
#include <millrace/pipeline/base/error.h>

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace::detail {

// Lists the files with `extensions`, unless the options name others.
FileList list_media(const std::filesystem::path& folder, FileListOptions options,
                    const std::vector<std::string>& extensions);
// Throws an Error that names the folder and the extensions if there are no files.
void refuse_empty(const FileList& files, std::string_view what,
                  const std::vector<std::string>& extensions);
// Logs one line per entry, at most ten.
void log_left_out(std::string_view folder, const std::vector<LeftOut>& left_out);

// Dataset::cost of a file: its size in bytes, 0 if it cannot be read. Asks the file system only if
// the list does not know.
std::int64_t cost_of(const FileList& files, std::int64_t file);

// Adds the path, in printable form, to an error.
Status at_file(Status status, const std::filesystem::path& path);

// The smallest length of the shorter side at which the image covers the crop.
std::int64_t covering_side(const ImageInfo& picture, const PixelSize& crop);

// Decoders that are not thread-safe, lent to one load() at a time. Copies of a data set share a
// pool.
template <typename Reader>
class ReaderPool {
 public:
  class Loan {
   public:
    Loan(ReaderPool& pool, std::unique_ptr<Reader> reader)
        : pool_(&pool), reader_(std::move(reader)) {}
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;
    ~Loan() {
      std::lock_guard lock(pool_->mutex_);
      pool_->idle_.push_back(std::move(reader_));
    }
    Reader& operator*() const { return *reader_; }
    Reader* operator->() const { return reader_.get(); }

   private:
    ReaderPool* pool_;
    std::unique_ptr<Reader> reader_;
  };

  Loan lend() {
    std::unique_lock lock(mutex_);
    if (idle_.empty()) {
      lock.unlock();
      return Loan(*this, std::make_unique<Reader>());
    }
    auto reader = std::move(idle_.back());
    idle_.pop_back();
    return Loan(*this, std::move(reader));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Reader>> idle_;
};

}  // namespace millrace::detail
