#include "slot.h"

#include <millrace/pipeline/base/log.h>
#include <millrace/pipeline/loader/loader.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>
#include <vector>

namespace millrace {

// Note [the ring]
// A slot is free, running, ready, or held by the consumer. Slots start in the order of the plan and
// only while no other slot has rows that nobody has begun, so workers always work on the batch
// that is wanted first. Nobody blocks inside a worker: back-pressure is that no slot is free.
// The ring outlives its loader for as long as a batch is held.
class Loader::Ring : public std::enable_shared_from_this<Ring> {
 public:
  Ring(AnyDataset dataset, LoaderOptions options);

  std::shared_ptr<BatchData> next();
  void cycle();
  void seek(const Position& position);
  void cancel();
  void close();
  LoaderStats stats() const;
  Position position() const;

  LoaderParts parts;
  std::vector<std::unique_ptr<Slot>> slots;

 private:
  using Lock = std::unique_lock<std::mutex>;

  void start_next(const Lock&);
  void all_claimed(Slot& slot);
  void published(Slot& slot);
  void copied(Slot& slot);
  void give_back(Slot& slot);
  void free_if_unused(Slot& slot, const Lock&);
  void drain(Lock& lock);

  bool is_ready(const Lock&) const;
  bool worth_waking_for(const Slot& slot, const Lock&) const;
  void wait_until_ready(Lock& lock);
  [[noreturn]] void fail(Error error);
  void record_failures(Slot& slot);
  std::string describe_stall(const Lock&) const;
  bool consumer_holds_all(const Lock&) const { return held_ == static_cast<int>(slots.size()); }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Slot*> free_;
  std::vector<Slot*> in_flight_;  // by batch number modulo the number of slots
  Slot* open_ = nullptr;          // has rows that nobody has begun
  Position cursor_;               // of the next batch to start
  Position delivered_position_;   // after the last batch that the consumer got
  std::int64_t epoch_ = 0;        // that next() serves; starting stops at its end unless cycling
  std::int64_t started_ = 0, delivered_ = 0;
  int running_ = 0, held_ = 0;
  bool wanted_ = false;  // the consumer has asked for a batch of this epoch
  bool cycling_ = false, cancelled_ = false;
  std::optional<Error> failed_;
  int lines_logged_ = 0;
  LoaderStats stats_;
  std::int64_t first_call_ns_ = 0, last_return_ns_ = 0;
};

Loader::Ring::Ring(AnyDataset dataset, LoaderOptions options)
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

// Called with the lock held, which also keeps drain() from looking at a slot half started.
void Loader::Ring::start_next(const Lock&) {
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

void Loader::Ring::all_claimed(Slot& slot) {
  Lock lock(mutex_);
  if (open_ == &slot) open_ = nullptr;
  start_next(lock);
}

void Loader::Ring::published(Slot& slot) {
  bool waited_for = false;
  {
    Lock lock(mutex_);
    if (open_ == &slot) open_ = nullptr;
    slot.ready = true;
    slot.ready_ns = now_ns();
    --running_;
    waited_for = worth_waking_for(slot, lock) || parts.stop;
  }
  // Without the lock, or the consumer would wake up only to wait for it. The ring is still there:
  // close() joins every graph before it ends, and this is part of one.
  if (waited_for) changed_.notify_all();
}

// A batch of rows that take microseconds is quicker made than a consumer woken, which takes the
// processor from a worker. It sleeps until some are ready, or a millisecond (wait_until_ready()).
bool Loader::Ring::worth_waking_for(const Slot& slot, const Lock& lock) const {
  if (!slot.is_quick()) return slot.batch_number() == delivered_;
  std::int64_t ready = started_ - delivered_ - running_;
  auto enough = static_cast<std::int64_t>(slots.size()) - 2;
  return is_ready(lock) && (running_ == 0 || ready >= enough);
}

void Loader::Ring::free_if_unused(Slot& slot, const Lock& lock) {
  if (slot.in_use || slot.copying) return;
  free_.push_back(&slot);
  start_next(lock);
  changed_.notify_all();
}

void Loader::Ring::copied(Slot& slot) {
  Lock lock(mutex_);
  slot.copying = false;
  free_if_unused(slot, lock);
  changed_.notify_all();
}

void Loader::Ring::give_back(Slot& slot) {
  slot.recycle();
  Lock lock(mutex_);
  --held_;
  slot.in_use = false;
  free_if_unused(slot, lock);
}

bool Loader::Ring::is_ready(const Lock&) const {
  const Slot* slot = in_flight_[static_cast<std::size_t>(delivered_) % slots.size()];
  return slot != nullptr && slot->batch_number() == delivered_ && slot->ready;
}

std::shared_ptr<BatchData> Loader::Ring::next() {
  Lock lock(mutex_);
  std::int64_t called = now_ns();
  if (first_call_ns_ == 0) first_call_ns_ = called;
  if (failed_) throw *failed_;
  if (cancelled_) throw Error("the loader was cancelled").kind(ErrorKind::cancelled);
  wanted_ = true;
  start_next(lock);
  wait_until_ready(lock);
  // A batch that was published after the call may lack rows.
  if (cancelled_) throw Error("the loader was cancelled").kind(ErrorKind::cancelled);
  stats_.consumer_wait_seconds += 1e-9 * static_cast<double>(now_ns() - called);
  last_return_ns_ = now_ns();
  if (!is_ready(lock)) {  // the epoch's end
    wanted_ = false;
    cursor_ = cursor_.epoch == epoch_ ? Sampler::next_epoch(cursor_) : cursor_;
    delivered_position_ = cursor_;
    epoch_ = cursor_.epoch;
    return nullptr;
  }
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
  stats_.slot_wait_seconds +=
      1e-9 * static_cast<double>(std::max<std::int64_t>(0, called - slot.ready_ns));
  ++stats_.batches;
  stats_.samples += slot.data().rows;
  stats_.dropped += slot.dropped_rows();
  stats_.bytes += slot.bytes();
  stats_.replaced += slot.replaced_rows();
  stats_.collated_bytes += slot.data().collated_bytes;
  stats_.padding_bytes += slot.data().padding_bytes;
  last_return_ns_ = now_ns();
  return lease;
}

// Returns when the wanted batch is ready, or when none will come because the epoch is over.
void Loader::Ring::wait_until_ready(Lock& lock) {
  using Clock = std::chrono::steady_clock;
  constexpr auto look_again_after = std::chrono::milliseconds(1);
  const LoaderOptions& options = parts.options;
  auto started = Clock::now();
  auto warn_at = started + options.stall_warning;
  auto never = Clock::time_point::max();
  auto give_up_at = options.stall_timeout.count() > 0 ? started + options.stall_timeout : never;
  bool warn = options.stall_warning.count() > 0;
  while (!is_ready(lock)) {
    if (cancelled_) throw Error("the loader was cancelled").kind(ErrorKind::cancelled);
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

std::string Loader::Ring::describe_stall(const Lock& lock) const {
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

void Loader::Ring::fail(Error error) {
  failed_ = std::move(error);
  throw *failed_;
}

// In the order of batches and rows, not in the order in which threads met them, so that the ledger
// of two runs is the same; what is in flight is not recorded, since a resumed run will meet it.
void Loader::Ring::record_failures(Slot& slot) {
  const ErrorPolicy& policy = parts.options.errors;
  constexpr int most_lines = 20;
  std::vector<BadSample> failures = slot.take_failures();
  if (policy.drop) slot.data().dropped = failures;
  for (BadSample& bad : failures) {
    std::string line = bad.source + ": " + bad.stage + ": " + bad.reason;
    if (!parts.ledger.add(std::move(bad))) continue;
    std::string where = parts.ledger.path().empty() ? "" : ", see " + parts.ledger.path().string();
    if (!policy.fail && lines_logged_ < most_lines) {
      std::string message = line;
      log(LogLevel::warning,
          message.append(policy.drop ? "; left out" : "; replaced").append(where));
      if (++lines_logged_ == most_lines) {
        log(LogLevel::warning, "loader: further bad samples are only recorded" + where);
      }
    }
    std::int64_t count = parts.ledger.bad_samples();
    double share = static_cast<double>(count) / static_cast<double>(parts.dataset->size());
    bool too_many = policy.max_count >= 0 && count > policy.max_count;
    if (!policy.fail && (too_many || share > policy.max_fraction)) {
      const char* limit = too_many ? "max_count" : "max_fraction";
      fail(Error(
               std::to_string(count) + " of " + std::to_string(parts.dataset->size()) +
               " samples are bad, more than " +
               (policy.max_name.empty() ? limit : policy.max_name) + " (" +
               (too_many ? std::to_string(policy.max_count) : std::to_string(policy.max_fraction)) +
               ") allows. Last: " + line)
               .stage("loader")
               .hint("Mend the data, or allow more bad samples" + where));
    }
  }
}

void Loader::Ring::cycle() {
  Lock lock(mutex_);
  cycling_ = true;
}

void Loader::Ring::cancel() {
  Lock lock(mutex_);
  cancelled_ = true;
  parts.stop = true;
  changed_.notify_all();
}

// Waits until no graph runs and no copy reads host memory. Nothing starts while `stop` is set.
void Loader::Ring::drain(Lock& lock) {
  parts.stop = true;
  changed_.wait(lock, [this] {
    auto copying = [](const auto& slot) { return slot->copying.load(); };
    return running_ == 0 && std::ranges::none_of(slots, copying);
  });
  lock.unlock();
  for (auto& slot : slots) slot->join();
  lock.lock();
}

void Loader::Ring::close() {
  Lock lock(mutex_);
  cancelled_ = true;
  changed_.notify_all();
  drain(lock);
}

void Loader::Ring::seek(const Position& position) {
  Lock lock(mutex_);
  if (position.next < 0 || position.next > parts.dataset->size() || position.epoch < 0 ||
      position.part < 0 || position.part >= parts.options.group || !has_sound_buckets(position)) {
    throw Error("seek: {epoch " + std::to_string(position.epoch) + ", next " +
                std::to_string(position.next) + "} is not in a dataset of " +
                std::to_string(parts.dataset->size()) + " samples")
        .kind(ErrorKind::usage);
  }
  if (cancelled_) throw Error("the loader was cancelled").kind(ErrorKind::cancelled);
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

Position Loader::Ring::position() const {
  Lock lock(mutex_);
  return delivered_position_;
}

LoaderStats Loader::Ring::stats() const {
  Lock lock(mutex_);
  LoaderStats stats = stats_;
  stats.wall_seconds = 1e-9 * static_cast<double>(last_return_ns_ - first_call_ns_);
  stats.stages = parts.clock.summary();
  stats.bad_samples = parts.ledger.bad_samples();
  return stats;
}

Loader::Loader(AnyDataset dataset, LoaderOptions options)
    : ring_(std::make_shared<Ring>(std::move(dataset), std::move(options))) {}
Loader::~Loader() {
  if (ring_) ring_->close();
}
Loader::Loader(Loader&&) noexcept = default;
Loader& Loader::operator=(Loader&& other) noexcept {
  if (ring_ && ring_ != other.ring_) ring_->close();
  ring_ = std::move(other.ring_);
  return *this;
}

std::optional<Batch> Loader::next() {
  auto data = ring_->next();
  if (data == nullptr) return std::nullopt;
  return Batch(std::move(data));
}
Loader::Cycle Loader::cycle() {
  ring_->cycle();
  return Cycle(*this);
}
Position Loader::position() const {
  return ring_->position();
}
void Loader::seek(const Position& position) {
  ring_->seek(position);
}
void Loader::cancel() {
  ring_->cancel();
}
std::int64_t Loader::batches_per_epoch() const {
  return ring_->parts.sampler.steps_per_epoch();
}
LoaderStats Loader::stats() const {
  return ring_->stats();
}
const Ledger& Loader::ledger() const {
  return ring_->parts.ledger;
}
const Schema& Loader::schema() const {
  return ring_->parts.schema;
}
std::string Loader::dump_graph() const {
  return ring_->slots[0]->dump_graph();
}
void Loader::write_trace(const std::filesystem::path& path) const {
  ring_->parts.clock.write_trace(path);
}

}  // namespace millrace
