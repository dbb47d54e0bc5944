#include "tools/preprocess/shards/claims.h"

#include <millrace/pipeline/base/error.h>
#include <millrace/pipeline/base/log.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <thread>

#include <fcntl.h>
#include <unistd.h>

namespace millrace {

namespace {

using Clock = std::chrono::steady_clock;

class All : public Claims {
 public:
  Shards take(const Shards& missing) override { return missing; }
  bool others_work() override { return false; }
};

class Part : public Claims {
 public:
  Part(std::int64_t part, std::int64_t parts) : part_(part), parts_(parts) {}
  Shards take(const Shards& missing) override {
    Shards ours;
    for (std::int64_t shard : missing) {
      if (shard % parts_ == part_) ours.push_back(shard);
    }
    return ours;
  }
  bool others_work() override { return false; }

 private:
  std::int64_t part_, parts_;
};

// One byte of a file is locked for each shard being made. The kernel releases the locks of a dead
// process, so no time-out is needed.
class LockFile {
 public:
  explicit LockFile(std::filesystem::path path) : path_(std::move(path)) {}
  ~LockFile() {
    if (file_ < 0) return;
    ::close(file_);
    ::unlink(path_.c_str());
  }
  LockFile(const LockFile&) = delete;
  LockFile& operator=(const LockFile&) = delete;

  bool lock(std::int64_t shard) {
    if (file_ < 0) file_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (file_ < 0) return true;  // cannot lock: making a shard twice is better than never
    struct flock range {};
    range.l_type = F_WRLCK;
    range.l_whence = SEEK_SET;
    range.l_start = shard;
    range.l_len = 1;
    return fcntl(file_, F_OFD_SETLK, &range) == 0;
  }

 private:
  std::filesystem::path path_;
  int file_ = -1;
};

// Identifies process and machine; empty if unknown.
std::string machine() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  char space[64] = {};
  ssize_t length = readlink("/proc/self/ns/pid", space, sizeof space - 1);
  return std::string(name) + "/" +
         std::string(space, length > 0 ? static_cast<std::size_t>(length) : 0);
}

// Field 22 of /proc/<pid>/stat, the start time, distinguishes processes that had the same pid.
// States "Z" and "X" are dead processes that were not reaped yet.
std::string start_time(pid_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
  std::string text((std::istreambuf_iterator<char>(in)), {});
  std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return "";
  std::istringstream fields(text.substr(name_end + 2));
  std::string field;
  for (int i = 3; i <= 22 && fields >> field; ++i) {
    if (i == 3 && (field == "Z" || field == "X")) return "";
  }
  return field;
}

// The number of running children of our parent that run the same program as we do.
int living_siblings() {
  std::string parent = std::to_string(getppid());
  std::ifstream in("/proc/" + parent + "/task/" + parent + "/children");
  std::error_code ignored;
  auto program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  int count = 0;
  for (pid_t pid = 0; in >> pid;) {
    auto other = std::filesystem::read_symlink("/proc/" + std::to_string(pid) + "/exe", ignored);
    if (other == program && !start_time(pid).empty()) ++count;
  }
  return count;
}

// Note [a rank that dies]
// Every rank increments a counter in the store once a second. A rank is dead if its counter has not
// changed for `patience`, or if it ran on this machine and its process is gone. Its shards go to
// the first rank that asks. Clocks of different machines are never compared.
//
// torchrun stops the other ranks when one dies, but gives them 30 s to end. A rank that is stopped
// for this reason continues with the remaining shards; if the time is too short, running the same
// command again continues from there.
class RankClaims : public Claims {
 public:
  RankClaims(const Ranks& ranks, const std::filesystem::path& lock_file,
             const std::function<bool()>& nothing_left)
      : ranks_(ranks), locks_(lock_file) {
    prepare_rank_store();
    bool hosts = ranks.rank == 0 && !ranks.agent_hosts;
    auto give_up = Clock::now() + std::chrono::seconds(30);
    while (!hosts && !store_answers(ranks) && Clock::now() < give_up && !nothing_left()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    if (!hosts && !store_answers(ranks)) {
      if (!nothing_left()) lose_store(Error("nobody answers at " + ranks.address));
      store_usable_ = false;
      return;
    }
    try {
      store_ = open_rank_store(ranks);
      store_->set(key("who", ranks_.rank),
                  machine() + " " + std::to_string(getpid()) + " " + start_time(getpid()));
      heart_ = std::jthread([this](const std::stop_token& stop) { beat(stop); });
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::usage) throw;
      lose_store(error);
    } catch (const std::exception& problem) {
      lose_store(problem);
    }
  }
  ~RankClaims() override {
    heart_.request_stop();
    if (heart_.joinable()) heart_.join();
    try {
      if (store_usable_) store_->set(key("bye", ranks_.rank), "1");
      if (ranks_.rank == 0 && !ranks_.agent_hosts) wait_for_guests();
    } catch (const std::exception&) {  // the store ended first
    }
  }

  Shards take(const Shards& missing) override {
    std::size_t most = std::clamp<std::size_t>(
        missing.size() / (2 * static_cast<std::size_t>(ranks_.world)), 1, 64);
    Shards ours;
    for (std::int64_t shard : missing) {
      if (ours.size() == most) break;
      if (claim(shard)) ours.push_back(shard);
    }
    return ours;
  }
  bool others_work() override { return true; }

  bool somebody_died() override {
    try {
      // A rank may die before it has written its identity; torchrun's agent is the parent of all
      // ranks.
      const char* local = std::getenv("LOCAL_WORLD_SIZE");
      int ended = 0;
      for (int rank = 0; rank < ranks_.world && store_usable_; ++rank) {
        ended += store_->get(key("bye", rank)).empty() ? 0 : 1;
      }
      if (ranks_.agent_hosts && local && living_siblings() + ended < std::atoi(local)) return true;
      for (int rank = 0; rank < ranks_.world && store_usable_; ++rank) {
        if (rank != ranks_.rank && process_gone(rank) && store_->get(key("bye", rank)).empty()) {
          return true;
        }
      }
    } catch (const std::exception& problem) {
      lose_store(problem);
    }
    return !store_usable_;
  }

 private:
  static std::string key(const char* what, int rank) {
    return std::string(what) + "/" + std::to_string(rank);
  }

  bool claim(std::int64_t shard) {
    if (!store_usable_) return locks_.lock(shard);
    std::string us = std::to_string(ranks_.rank);
    std::string name = "shard/" + std::to_string(shard);
    try {
      std::string owner = store_->exchange(name, "", us);
      if (owner == us) return true;
      int rank = std::stoi(owner);
      if (!is_dead(rank)) return false;
      if (told_dead_.insert(rank).second) {
        log(LogLevel::warning, "rank " + owner + " has ended; its shards are taken over");
      }
      return store_->exchange(name, owner, us) == us;
    } catch (const std::exception& problem) {
      lose_store(problem);
      return locks_.lock(shard);
    }
  }

  bool is_dead(int rank) {
    if (!store_->get(key("bye", rank)).empty() || process_gone(rank)) return true;
    std::string beats = store_->get(key("alive", rank));
    auto [seen, first] = heard_.try_emplace(rank, beats, Clock::now());
    if (seen->second.first != beats) seen->second = {beats, Clock::now()};
    return Clock::now() - seen->second.second > patience;
  }

  // Also false if it runs on another machine, where we cannot look.
  bool process_gone(int rank) {
    std::istringstream who(store_->get(key("who", rank)));
    std::string where, started;
    pid_t pid = 0;
    if (!(who >> where >> pid >> started) || where != machine()) return false;
    return start_time(pid) != started;
  }

  // The store ends with rank 0, so rank 0 stays until the other ranks are done or dead, and waits a
  // little for ranks that have not connected yet.
  void wait_for_guests() {
    auto patience_ends = began_ + std::chrono::seconds(5);
    for (int rank = 1; rank < ranks_.world && store_usable_; ++rank) {
      while (store_->get(key("who", rank)).empty() && Clock::now() < patience_ends) pause();
      while (!store_->get(key("who", rank)).empty() && !is_dead(rank)) pause();
    }
  }
  static void pause() { std::this_thread::sleep_for(std::chrono::milliseconds(50)); }

  void beat(const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any wake;
    std::unique_lock lock(mutex);
    for (std::int64_t n = 0; !stop.stop_requested() && store_usable_; ++n) {
      try {
        store_->set(key("alive", ranks_.rank), std::to_string(n));
      } catch (const std::exception& problem) {
        lose_store(problem);
      }
      wake.wait_for(lock, stop, std::chrono::seconds(1), [] { return false; });
    }
  }

  void lose_store(const std::exception& problem) {
    if (!store_usable_.exchange(false)) return;
    std::string reason = problem.what();
    log(LogLevel::warning,
        "the ranks' store is gone (" + reason.substr(0, reason.find('\n')) +
            "), probably with rank 0; the shards are shared by locks in a file from now on");
  }

  static constexpr std::chrono::seconds patience{15};

  Ranks ranks_;
  std::unique_ptr<RankStore> store_;
  std::atomic<bool> store_usable_{true};
  LockFile locks_;
  std::map<int, std::pair<std::string, Clock::time_point>> heard_;
  std::set<int> told_dead_;
  Clock::time_point began_ = Clock::now();
  std::jthread heart_;
};

}  // namespace

std::unique_ptr<Claims> claim_all() {
  return std::make_unique<All>();
}
std::unique_ptr<Claims> claim_part(std::int64_t part, std::int64_t parts) {
  return std::make_unique<Part>(part, parts);
}
std::unique_ptr<Claims> claim_by_rank(const Ranks& ranks, const std::filesystem::path& lock_file,
                                      const std::function<bool()>& nothing_left) {
  return std::make_unique<RankClaims>(ranks, lock_file, nothing_left);
}

}  // namespace millrace
