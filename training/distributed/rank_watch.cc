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

// What the store has under a key now, or nothing.
std::string look(c10d::Store& store, const std::string& key) {
  return store.check({key}) ? to_text(store.get(key)) : "";
}

}  // namespace

RankWatch::RankWatch(c10::intrusive_ptr<c10d::Store> store, const RankWatchOptions& options)
    : store_(std::move(store)), options_(options), heard_at_(Clock::now()) {
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
    // The store went first.
  }
}

// Until all have left; not for those that never came, nor for those that are dead.
void RankWatch::wait_for_others() {
  const auto begin = Clock::now();
  for (int other = 0; other < options_.world; ++other) {
    const std::string last = look(*store_, key("beat", other));
    while (!last.empty() && !store_->check({key("left", other)}) &&
           Clock::now() - begin < options_.grace) {
      const bool alive = look(*store_, key("beat", other)) != last;
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
      reason = agreed_reason();
      if (reason.empty() && neighbour_is_silent()) {
        tell(c10::str("rank ", (options_.rank + 1) % options_.world,
                      " has given no sign of life for ", options_.silence.count() / 1000, " s"));
        reason = agreed_reason();
      }
    } catch (const std::exception&) {
      reason = "the store that the ranks share is gone: rank 0 or torchrun has ended";
    }
    if (reason.empty()) continue;
    // Whoever is in a collective with the lost rank finds out without help, if it can.
    if (pause(options_.grace) && !ending_) end_process(reason);
    return;
  }
}

bool RankWatch::neighbour_is_silent() {
  const int neighbour = (options_.rank + 1) % options_.world;
  const std::string now = look(*store_, key("beat", neighbour));
  if (now != heard_ || now.empty() || store_->check({key("left", neighbour)})) {
    heard_ = now;
    heard_at_ = Clock::now();
  }
  return Clock::now() - heard_at_ > options_.silence;
}

std::string RankWatch::agreed_reason() {
  return look(*store_, reason_key);
}

void RankWatch::tell(const std::string& reason) {
  try {
    store_->compareSet(reason_key, {}, to_bytes(reason));
  } catch (const std::exception&) {
    // Then they have lost the store too, and know.
  }
}

// The ranks whose sign of life has not changed for five beats.
std::string RankWatch::name_the_silent() {
  std::vector<std::string> before;
  for (int rank = 0; rank < options_.world; ++rank) {
    before.push_back(look(*store_, key("beat", rank)));
  }
  for (int i = 0; i < 10; ++i) {
    std::this_thread::sleep_for(options_.beat / 2);
    if (!agreed_reason().empty()) return {};
  }
  std::string silent;
  for (int rank = 0; rank < options_.world; ++rank) {
    if (rank == options_.rank || look(*store_, key("beat", rank)) != before[rank]) continue;
    silent.append(c10::str(silent.empty() ? "" : ", ", "rank ", rank));
  }
  return silent;
}

std::string RankWatch::find_reason(const std::string& symptom) {
  ending_ = true;
  try {
    const std::string silent = agreed_reason().empty() ? name_the_silent() : "";
    if (!silent.empty()) {
      tell(c10::str(silent, " is gone: it was killed, it crashed, or its machine was lost (",
                    symptom, ")"));
    }
    const std::string reason = agreed_reason();
    return reason.empty() ? c10::str("the connection to another rank is lost (", symptom, ")")
                          : reason;
  } catch (const std::exception&) {
    return c10::str("the other ranks and the store that they share are gone: rank 0 or torchrun ",
                    "has ended (", symptom, ")");
  }
}

void RankWatch::end_process(const std::string& reason) {
  log(LogLevel::error, c10::str("rank ", options_.rank, " ends: ", reason));
  // What is being written has no final name yet; what is finished is on the disk.
  _exit(1);
}

}  // namespace millrace
