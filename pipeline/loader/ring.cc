#include "ring.h"

#include "loader_checks.h"

#include <algorithm>
#include <utility>

namespace millrace::detail {

Ring::Ring(AnyDataset dataset, LoaderOptions options)
    : parts(std::move(dataset), std::move(options)) {
  cursor_ = parts.options.position.value_or(Position{.seed = parts.options.seed});
  if (cursor_.next == parts.dataset->size()) cursor_ = Sampler::next_epoch(cursor_);
  delivered_position_ = cursor_;
  epoch_ = cursor_.epoch;
  Slot::Events events{
      .all_claimed = [this](Slot& slot) { all_claimed(slot); },
      .published = [this](Slot& slot) { published(slot); },
      .copied = [this](Slot& slot) { copied(slot); },
  };
  for (int i = 0; i <= parts.options.prefetch; ++i) {
    slots.push_back(std::make_unique<Slot>(parts, events));
    free_.push_back(slots.back().get());
  }
  in_flight_.resize(slots.size());
  stats_.predicted_bytes = parts.predicted_bytes;
}

// The lock also keeps drain() from seeing a slot that is being started.
void Ring::start_next(const Lock&) {
  if (!wanted_ || parts.stop || open_ != nullptr || free_.empty()) return;
  std::optional<Step> step = parts.sampler.step(cursor_);
  if (!step && cycling_) {
    cursor_ = Sampler::next_epoch(cursor_);
    step = parts.sampler.step(cursor_);
  }
  if (!step || (cursor_.epoch != epoch_ && !cycling_)) return;
  Slot* slot = free_.back();
  free_.pop_back();
  open_ = slot;
  slot->ready = false;
  slot->in_use = true;
  in_flight_[static_cast<std::size_t>(started_) % slots.size()] = slot;
  ++running_;
  cursor_ = step->after;
  slot->prepare(*step, started_++);
  slot->start();
}

void Ring::all_claimed(Slot& slot) {
  Lock lock(mutex_);
  if (open_ == &slot) open_ = nullptr;
  start_next(lock);
}

void Ring::published(Slot& slot) {
  bool waited_for = false;
  {
    Lock lock(mutex_);
    if (open_ == &slot) open_ = nullptr;
    slot.ready = true;
    slot.ready_ns = now_ns();
    --running_;
    waited_for = worth_waking_for(slot, lock) || parts.stop;
  }
  // Without the lock: else the consumer would wake up only to wait for it. The ring still exists,
  // since close() joins every graph, and this function is called by one.
  if (waited_for) changed_.notify_all();
}

// Waking the consumer takes the processor from a worker, and longer than making a batch whose rows
// take microseconds. Such a consumer sleeps until several batches are ready, or for a millisecond
// (see wait_until_ready()).
bool Ring::worth_waking_for(const Slot& slot, const Lock& lock) const {
  if (!slot.is_quick()) return slot.batch_number() == delivered_;
  std::int64_t ready = started_ - delivered_ - running_;
  auto enough = static_cast<std::int64_t>(slots.size()) - 2;
  return is_ready(lock) && (running_ == 0 || ready >= enough);
}

void Ring::free_if_unused(Slot& slot, const Lock& lock) {
  if (slot.in_use || slot.copying) return;
  free_.push_back(&slot);
  start_next(lock);
  changed_.notify_all();
}

void Ring::copied(Slot& slot) {
  Lock lock(mutex_);
  slot.copying = false;
  free_if_unused(slot, lock);
  changed_.notify_all();
}

void Ring::give_back(Slot& slot) {
  slot.recycle();
  Lock lock(mutex_);
  --held_;
  slot.in_use = false;
  free_if_unused(slot, lock);
}

bool Ring::is_ready(const Lock&) const {
  const Slot* slot = in_flight_[static_cast<std::size_t>(delivered_) % slots.size()];
  return slot != nullptr && slot->batch_number() == delivered_ && slot->ready;
}

void Ring::cycle() {
  Lock lock(mutex_);
  cycling_ = true;
}

void Ring::cancel() {
  Lock lock(mutex_);
  cancelled_ = true;
  parts.stop = true;
  changed_.notify_all();
}

// Waits until no graph runs and no copy reads host memory. No batch starts while `stop` is set.
void Ring::drain(Lock& lock) {
  parts.stop = true;
  changed_.wait(lock, [this] {
    auto copying = [](const auto& slot) { return slot->copying.load(); };
    return running_ == 0 && std::ranges::none_of(slots, copying);
  });
  lock.unlock();
  for (auto& slot : slots) slot->join();
  lock.lock();
}

void Ring::close() {
  Lock lock(mutex_);
  cancelled_ = true;
  changed_.notify_all();
  drain(lock);
}

void Ring::seek(const Position& position) {
  Lock lock(mutex_);
  if (!is_inside(position, parts.dataset->size(), parts.options.group)) {
    throw Error("seek: {epoch " + std::to_string(position.epoch) + ", next " +
                std::to_string(position.next) + "} is not in a dataset of " +
                std::to_string(parts.dataset->size()) + " samples")
        .kind(ErrorKind::usage);
  }
  check_cancelled(lock);
  drain(lock);
  for (Slot*& slot : in_flight_) {
    if (slot == nullptr) continue;
    slot->take_failures();
    slot->recycle();
    slot->in_use = false;
    free_.push_back(std::exchange(slot, nullptr));
  }
  cursor_ = position.next == parts.dataset->size() ? Sampler::next_epoch(position) : position;
  delivered_position_ = cursor_;
  epoch_ = cursor_.epoch;
  started_ = delivered_;
  open_ = nullptr;
  wanted_ = false;
  cycling_ = false;
  failed_.reset();
  parts.stop = false;
}

Position Ring::position() const {
  Lock lock(mutex_);
  return delivered_position_;
}

LoaderStats Ring::stats() const {
  Lock lock(mutex_);
  LoaderStats stats = stats_;
  stats.wall_seconds = 1e-9 * static_cast<double>(last_return_ns_ - first_call_ns_);
  stats.stages = parts.clock.summary();
  stats.bad_samples = parts.ledger.bad_samples();
  return stats;
}

}  // namespace millrace::detail
