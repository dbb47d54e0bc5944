// The half of the ring that the consumer calls: next(), the wait for a batch, and what happens to
// the samples that failed.
#include "ring.h"

#include <millrace/pipeline/base/log.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace millrace::detail {

namespace {

std::string see_ledger(const Ledger& ledger) {
  return ledger.path().empty() ? "" : ", see " + ledger.path().string();
}

}  // namespace

void Ring::check_cancelled(const Lock&) const {
  if (cancelled_) throw Error("the loader was cancelled").kind(ErrorKind::cancelled);
}

std::shared_ptr<BatchData> Ring::next() {
  Lock lock(mutex_);
  std::int64_t called_ns = now_ns();
  if (first_call_ns_ == 0) first_call_ns_ = called_ns;
  if (failed_) throw *failed_;
  check_cancelled(lock);
  wanted_ = true;
  start_next(lock);
  wait_until_ready(lock);
  check_cancelled(lock);  // a batch that was published after cancel() may lack rows
  last_return_ns_ = now_ns();
  stats_.consumer_wait_seconds += 1e-9 * static_cast<double>(last_return_ns_ - called_ns);
  if (!is_ready(lock)) {
    finish_epoch(lock);
    return nullptr;
  }
  return deliver(lock, called_ns);
}

void Ring::finish_epoch(const Lock&) {
  wanted_ = false;
  cursor_ = cursor_.epoch == epoch_ ? Sampler::next_epoch(cursor_) : cursor_;
  delivered_position_ = cursor_;
  epoch_ = cursor_.epoch;
}

std::shared_ptr<BatchData> Ring::deliver(Lock& lock, std::int64_t called_ns) {
  Slot& slot =
      *std::exchange(in_flight_[static_cast<std::size_t>(delivered_) % slots.size()], nullptr);
  ++delivered_;
  ++held_;
  // From here on the slot is the consumer's, also when an error is thrown.
  std::shared_ptr<BatchData> lease(
      &slot.data(), [ring = shared_from_this(), &slot](BatchData*) { ring->give_back(slot); });
  try {
    record_failures(slot);
    if (!slot.status().ok()) fail(slot.status().error());
  } catch (...) {
    lock.unlock();  // giving the slot back takes the lock
    lease.reset();
    throw;
  }
  delivered_position_ = slot.data().step.after;
  count_delivery(slot, called_ns);
  last_return_ns_ = now_ns();
  return lease;
}

void Ring::count_delivery(Slot& slot, std::int64_t called_ns) {
  stats_.slot_wait_seconds +=
      1e-9 * static_cast<double>(std::max<std::int64_t>(0, called_ns - slot.ready_ns));
  ++stats_.batches;
  stats_.samples += slot.data().rows;
  stats_.dropped += slot.dropped_rows();
  stats_.bytes += slot.bytes();
  stats_.replaced += slot.replaced_rows();
  stats_.collated_bytes += slot.data().collated_bytes;
  stats_.padding_bytes += slot.data().padding_bytes;
}

// Returns when the next batch is ready, or when the epoch is over and no batch is left.
void Ring::wait_until_ready(Lock& lock) {
  using Clock = std::chrono::steady_clock;
  constexpr auto look_again_after = std::chrono::milliseconds(1);
  const LoaderOptions& options = parts.options;
  auto started = Clock::now();
  auto warn_at = started + options.stall_warning;
  auto never = Clock::time_point::max();
  auto give_up_at = options.stall_timeout.count() > 0 ? started + options.stall_timeout : never;
  bool warn = options.stall_warning.count() > 0;
  while (!is_ready(lock)) {
    check_cancelled(lock);
    bool none_in_flight = started_ == delivered_;
    bool epoch_over = !cycling_ && (cursor_.epoch != epoch_ || !parts.sampler.step(cursor_));
    if (none_in_flight && epoch_over) return;
    auto wake_at = std::min(warn ? warn_at : never, give_up_at);
    if (slots[0]->is_quick()) wake_at = std::min(wake_at, Clock::now() + look_again_after);
    if (wake_at == never) {
      changed_.wait(lock);
    } else {
      changed_.wait_until(lock, wake_at);
    }
    if (is_ready(lock)) return;
    auto now = Clock::now();
    if (now >= give_up_at || (warn && now >= warn_at && consumer_holds_all(lock))) {
      fail(Error("stalled: " + describe_stall(lock)).kind(ErrorKind::stalled));
    }
    if (warn && now >= warn_at) {
      log(LogLevel::warning, "loader: waiting: " + describe_stall(lock));
      warn_at = now + options.stall_warning;
    }
  }
}

std::string Ring::describe_stall(const Lock& lock) const {
  if (consumer_holds_all(lock)) {
    return "the consumer holds all " + std::to_string(slots.size()) +
           " batches (prefetch + 1). Destroy a Batch before asking for the next; its arrays may "
           "be kept";
  }
  const Slot* slot = in_flight_[static_cast<std::size_t>(delivered_) % slots.size()];
  if (slot != nullptr && slot->batch_number() == delivered_) return slot->describe_progress();
  if (std::ranges::any_of(slots, [](const auto& s) { return s->copying.load(); })) {
    return "a copy to the device has not ended, and no other slot is free";
  }
  return "the batch has not started; an earlier one is still being loaded";
}

void Ring::fail(Error error) {
  failed_ = std::move(error);
  throw *failed_;
}

// In the order of batches and rows, not of threads: two runs write the same ledger. Failures of
// batches that were not delivered are not recorded; a resumed run loads those batches again.
void Ring::record_failures(Slot& slot) {
  const ErrorPolicy& policy = parts.options.errors;
  std::vector<BadSample> failures = slot.take_failures();
  if (policy.drop) slot.data().dropped = failures;
  for (BadSample& bad : failures) {
    std::string line = bad.source + ": " + bad.stage + ": " + bad.reason;
    if (!parts.ledger.add(std::move(bad)) || policy.fail) continue;
    log_failure(line);
    check_error_limits(line);
  }
}

void Ring::log_failure(const std::string& line) {
  constexpr int most_lines = 20;
  if (lines_logged_ >= most_lines) return;
  std::string where = see_ledger(parts.ledger);
  std::string message = line;
  log(LogLevel::warning,
      message.append(parts.options.errors.drop ? "; left out" : "; replaced").append(where));
  if (++lines_logged_ == most_lines) {
    log(LogLevel::warning, "loader: further bad samples are only recorded" + where);
  }
}

void Ring::check_error_limits(const std::string& last_failure) {
  const ErrorPolicy& policy = parts.options.errors;
  std::int64_t count = parts.ledger.bad_samples(), size = parts.dataset->size();
  double fraction = static_cast<double>(count) / static_cast<double>(size);
  bool too_many = policy.max_count >= 0 && count > policy.max_count;
  if (!too_many && fraction <= policy.max_fraction) return;
  std::string name = too_many ? "max_count" : "max_fraction";
  if (!policy.max_name.empty()) name = policy.max_name;
  std::string limit =
      too_many ? std::to_string(policy.max_count) : std::to_string(policy.max_fraction);
  fail(Error(std::to_string(count) + " of " + std::to_string(size) +
             " samples are bad, more than " + name + " (" + limit +
             ") allows. Last: " + last_failure)
           .stage("loader")
           .hint("Mend the data, or allow more bad samples" + see_ledger(parts.ledger)));
}

}  // namespace millrace::detail
