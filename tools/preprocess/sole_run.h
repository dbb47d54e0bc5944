// Keeps a second run of the same command waiting until the first has ended, so that two that were
// started by mistake neither do the work twice nor remove what the other has begun.
#pragma once

#include <millrace/pipeline/log.h>

#include <cerrno>
#include <filesystem>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace millrace {

class SoleRun {
 public:
  explicit SoleRun(const std::filesystem::path& out) : path_(out.string() + ".lock") {
    // A lock file that its last holder has removed is nobody's: look for the new one.
    while (take() && !is_still_there()) ::close(file_);
  }
  ~SoleRun() {
    if (file_ < 0) return;
    ::unlink(path_.c_str());
    ::close(file_);
  }
  SoleRun(const SoleRun&) = delete;
  SoleRun& operator=(const SoleRun&) = delete;

 private:
  // False where no file can be made: what is wrong with the folder the cache's writer tells better.
  bool take() {
    file_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file_ < 0) return false;
    int result = ::flock(file_, LOCK_EX | LOCK_NB);
    if (result != 0 && errno == EWOULDBLOCK) {
      log(LogLevel::info, path_.string() + ": another run makes this cache; waiting for its end");
      do {
        result = ::flock(file_, LOCK_EX);
      } while (result != 0 && errno == EINTR);
    }
    return true;  // a file system without locks has none for anybody
  }
  bool is_still_there() const {
    struct stat ours {};
    struct stat found {};
    return ::fstat(file_, &ours) == 0 && ::stat(path_.c_str(), &found) == 0 &&
           ours.st_ino == found.st_ino && ours.st_dev == found.st_dev;
  }

  std::filesystem::path path_;
  int file_ = -1;
};

}  // namespace millrace
