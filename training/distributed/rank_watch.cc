#include "rank_watch.h"

#include <millrace/pipeline/base/log.h>

#include <algorithm>
#include <vector>

#include <c10/util/StringUtil.h>
#include <unistd.h>

namespace millrace {

namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* reason_key = "reason";

std::vector<std::uint8_t> to_bytes(const std::string& text) {
  return {text.begin(), text.end()};
}

std::string to_text(const std::vector<std::uint8_t>& bytes) {
  return {bytes.begin(), bytes.end()};
}

// The value of a key now, without waiting; empty if it has none.
std::string read_key(c10d::Store& store, const std::string& key) {
  return store.check({key}) ? to_text(store.get(key)) : "";
}

}  // namespace

RankWatch::RankWatch(c10::intrusive_ptr<c10d::Store> store, const RankWatchOptions& options)
    : store_(std::move(store)), options_(options), heartbeat_at_(Clock::now()) {
  beat(0);
  thread_ = std::thread([this] { run(); });
}

RankWatch::~RankWatch() {
  ending_ = true;
  {
    std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  thread_.join();
  try {
    store_->set(key("left", options_.rank), to_bytes("1"));
    if (options_.hosts) wait_for_others();
  } catch (const std::exception&) {
    // The store's server has already ended.
  }
}

// Waits until all ranks have left, except those that never joined or have stopped their heartbeat.
void RankWatch::wait_for_others() {
  const auto begin = Clock::now();
  for (int other = 0; other < options_.world; ++other) {
    const std::string last = read_key(*store_, key("beat", other));
    while (!last.empty() && !store_->check({key("left", other)}) &&
           Clock::now() - begin < options_.grace) {
      const bool alive = read_key(*store_, key("beat", other)) != last;
      if (!alive && Clock::now() - begin > 3 * options_.beat) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
}

std::string RankWatch::key(const char* what, int rank) const {
  return c10::str(what, "/", rank);
}

bool RankWatch::pause(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return !changed_.wait_for(lock, time, [this] { return over_; });
}

void RankWatch::beat(std::int64_t number) {
  store_->set(key("beat", options_.rank), to_bytes(std::to_string(number)));
}

void RankWatch::run() {
  std::int64_t number = 0;
  while (pause(options_.beat)) {
    std::string reason;
    try {
      beat(++number);
      reason = published_reason();
      if (reason.empty() && neighbour_is_silent()) {
        publish_reason(c10::str("rank ", (options_.rank + 1) % options_.world,
                                " has sent no heartbeat for ", options_.silence.count() / 1000,
                                " s"));
        reason = published_reason();
      }
    } catch (const std::exception&) {
      reason = "the ranks' store cannot be reached: rank 0 or torchrun has ended";
    }
    if (reason.empty()) continue;
    // A rank inside a collective usually notices the lost connection itself; wait for that first.
    if (pause(options_.grace) && !ending_) end_process(reason);
    return;
  }
}

bool RankWatch::neighbour_is_silent() {
  const int neighbour = (options_.rank + 1) % options_.world;
  const std::string now = read_key(*store_, key("beat", neighbour));
  if (now != heartbeat_ || now.empty() || store_->check({key("left", neighbour)})) {
    heartbeat_ = now;
    heartbeat_at_ = Clock::now();
  }
  return Clock::now() - heartbeat_at_ > options_.silence;
}

std::string RankWatch::published_reason() {
  return read_key(*store_, reason_key);
}

void RankWatch::publish_reason(const std::string& reason) {
  try {
    store_->compareSet(reason_key, {}, to_bytes(reason));
  } catch (const std::exception&) {
    // The store is gone, which the other ranks notice themselves.
  }
}

// The ranks whose heartbeat does not change for five beats; empty if a reason is published
// meanwhile.
std::string RankWatch::silent_ranks() {
  std::vector<std::string> before;
  for (int rank = 0; rank < options_.world; ++rank) {
    before.push_back(read_key(*store_, key("beat", rank)));
  }
  for (int i = 0; i < 10; ++i) {
    std::this_thread::sleep_for(options_.beat / 2);
    if (!published_reason().empty()) return {};
  }
  std::string silent;
  for (int rank = 0; rank < options_.world; ++rank) {
    if (rank == options_.rank || read_key(*store_, key("beat", rank)) != before[rank]) continue;
    silent.append(c10::str(silent.empty() ? "" : ", ", "rank ", rank));
  }
  return silent;
}

std::string RankWatch::find_reason(const std::string& symptom) {
  ending_ = true;
  try {
    const std::string silent = published_reason().empty() ? silent_ranks() : "";
    if (!silent.empty()) {
      publish_reason(c10::str(
          silent, " is gone: it was killed, it crashed, or its machine was lost (", symptom, ")"));
    }
    const std::string reason = published_reason();
    return reason.empty() ? c10::str("the connection to another rank is lost (", symptom, ")")
                          : reason;
  } catch (const std::exception&) {
    return c10::str("the other ranks and their store cannot be reached: rank 0 or torchrun ",
                    "has ended (", symptom, ")");
  }
}

void RankWatch::end_process(const std::string& reason) {
  log(LogLevel::error, c10::str("rank ", options_.rank, " ends: ", reason));
  // Safe at any time: files are written under a temporary name and renamed when complete.
  _exit(1);
}

}  // namespace millrace
