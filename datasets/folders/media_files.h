// Private: what every folder data set begins and ends with.
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

namespace millrace {

// The files, with the data set's own extensions unless the options have others. Says in the log
// what was left out.
FileList list_media(const std::filesystem::path& folder, FileListOptions options,
                    const std::vector<std::string>& extensions);
// Throws an error that names the folder and the extensions.
void refuse_empty(const FileList& files, std::string_view what,
                  const std::vector<std::string>& extensions);
// One line each, but no more than a few.
void log_left_out(std::string_view folder, const std::vector<LeftOut>& left_out);

// The error with its path in printable form, and what to do.
Status at_file(Status status, const std::filesystem::path& path);

// The smallest shorter side at which a picture covers the crop.
std::int64_t covering_side(const ImageInfo& picture, const PixelSize& crop);

// Decoders that serve one thread at a time, lent to whoever loads. Shared by copies of a data set.
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

}  // namespace millrace
