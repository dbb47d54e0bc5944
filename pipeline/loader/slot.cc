#include "slot.h"

#include <millrace/pipeline/base/log.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace millrace {

Slot::Slot(LoaderParts& parts, Events events)
    : parts_(parts),
      events_(std::move(events)),
      memory_(static_cast<std::size_t>(parts.schema.size())),
      rows_per_task_(std::clamp<std::int64_t>(parts.dataset->samples_per_task(), 1,
                                              parts.options.batch_size)) {
  auto fields = static_cast<std::size_t>(parts.schema.size());
  data_.schema = &parts.schema;
  data_.device = parts.options.device.get();
  data_.consumer = parts.consumer.get();
  data_.arrays.resize(fields);
  data_.lengths.resize(fields);
  data_.lists.resize(fields);
  data_.texts.resize(fields);
  for (int field = 0; field < parts.schema.size(); ++field) {
    bool list = parts.collate[static_cast<std::size_t>(field)].kind == Collate::Kind::list;
    data_.forms.push_back(parts.schema[field].is_fixed() ? FieldForm::stacked
                          : list                         ? FieldForm::list
                                                         : FieldForm::collated);
  }

  auto collate = graph_.emplace([this] { this->collate(); }).name("collate");
  auto transfer = graph_.emplace([this] { this->transfer(); }).name("transfer");
  auto publish = graph_.emplace([this] { events_.published(*this); }).name("publish");
  for (std::int64_t i = 0; i < parts.options.batch_size; ++i) {
    rows_.emplace_back(Sample::unbound(parts.schema)).sample.set_budget(&parts.budget);
  }
  for (std::int64_t i = 0; i < parts.options.batch_size; i += rows_per_task_) {
    std::int64_t last = std::min(i + rows_per_task_, parts.options.batch_size) - 1;
    std::string name = last == i ? "row " + std::to_string(i)
                                 : "rows " + std::to_string(i) + " to " + std::to_string(last);
    graph_.emplace([this] { load_rows(); }).name(name).precede(collate);
  }
  collate.precede(transfer);
  transfer.precede(publish);
  for (int field = 0; field < parts.schema.size(); ++field) {
    if (parts.schema[field].is_fixed()) bind_rows(field);
  }
}

std::size_t Slot::row_bytes(int field) const {
  const Field& f = parts_.schema[field];
  return static_cast<std::size_t>(f.shape.elements()) * item_size(f.dtype);
}

// A buffer that the consumer still holds is left to it, and another one taken.
void Slot::ensure(Buffer& buffer, BufferPool& pool, std::size_t bytes) {
  if (buffer.data() != nullptr && buffer.size() >= bytes && !buffer.shared()) return;
  buffer = Buffer();
  auto [fresh, after] = pool.take(bytes);
  buffer = std::move(fresh);
  if (after) reusable_.push_back(std::move(after));
}

// Sends every row of a fixed field to its place in the batch. A field that becomes float on the
// host is decoded into memory of the worker instead, when its row is loaded.
void Slot::bind_rows(int field) {
  auto f = static_cast<std::size_t>(field);
  FieldMemory& memory = memory_[f];
  bool on_device = parts_.options.device != nullptr;
  std::byte* before = memory.host.data();
  auto rows = static_cast<std::size_t>(parts_.options.batch_size);
  std::size_t float_bytes =
      static_cast<std::size_t>(parts_.batch_shape(field).elements()) * sizeof(float);
  bool float_on_host = parts_.to_float[f] && !on_device;
  ensure(memory.host, parts_.host_memory, rows * (float_on_host ? float_bytes : row_bytes(field)));
  if (on_device) {
    ensure(memory.device, parts_.device_memory, rows * row_bytes(field));
    if (parts_.to_float[f]) ensure(memory.converted, parts_.device_memory, rows * float_bytes);
  }
  if (float_on_host || memory.host.data() == before) return;
  for (std::size_t i = 0; i < rows; ++i) {
    Buffer place = Buffer::borrow(memory.host.data() + i * row_bytes(field), row_bytes(field));
    rows_[i].sample.bind(field,
                         Array(parts_.schema[field].dtype, parts_.schema[field].shape, place));
  }
}

void Slot::prepare(const Step& step, std::int64_t batch_number) {
  data_.step = step;
  data_.rows = step.rows;
  data_.wrapped = step.wrapped;
  batch_number_ = batch_number;
  status_ = Status();
  claimed_ = 0;
  doomed_ = false;
  stage_ = static_cast<int>(Stage::load);
  data_.indices.assign(static_cast<std::size_t>(step.rows), -1);
  for (int field = 0; field < parts_.schema.size(); ++field) {
    if (parts_.schema[field].is_fixed()) bind_rows(field);
  }
  put_in_order();
}

// Which row is begun when; where it lands in the batch does not depend on it.
void Slot::put_in_order() {
  longest_first_.clear();
  if (is_quick()) return;
  Sampler::Order order(parts_.sampler, data_.step);
  bool known = false;
  for (std::int64_t number = 0; number < data_.step.rows; ++number) {
    const std::int64_t cost = parts_.dataset->cost(order.index(number), data_.step.at.epoch);
    known = known || cost != 0;
    longest_first_.emplace_back(-cost, number);
  }
  if (!known) return longest_first_.clear();
  std::ranges::sort(longest_first_);
}

// One task: the next rows that nobody has begun.
void Slot::load_rows() noexcept {
  std::int64_t first = claimed_.fetch_add(rows_per_task_, std::memory_order_relaxed);
  std::int64_t rows = data_.step.rows, end = std::min(first + rows_per_task_, rows);
  if (first < rows && end == rows) events_.all_claimed(*this);
  if (first >= rows) return;  // a short batch has fewer rows than the graph
  if (!longest_first_.empty()) {
    first = longest_first_[static_cast<std::size_t>(first)].second;
    end = first + 1;
  }
  int worker = parts_.pool->this_worker();
  StageClock::Timer timer(parts_.clock, Stage::load, worker, batch_number_, first);
  Task task{timer, std::max(worker, 0), now_ns()};
  Sampler::Order order(parts_.sampler, data_.step);
  std::int64_t number = first, index = order.index(first);
  for (; number < end; ++number) {
    if (parts_.stop.load(std::memory_order_relaxed) || doomed_.load(std::memory_order_relaxed)) {
      break;
    }
    std::int64_t next = number + 1 < end ? order.index(number + 1) : -1;
    if (next >= 0) parts_.dataset->expect(next, data_.step.at.epoch);
    load_row(number, index, task);
    index = next;
  }
  timer.set_count(number - first);
}

// A task body never throws: an error is kept as the row's status and told to the consumer.
void Slot::load_row(std::int64_t number, std::int64_t index, const Task& task) noexcept {
  Row& row = rows_[static_cast<std::size_t>(number)];
  try {
    row.status = fill_row(row, number, index, task);
  } catch (const std::exception& exception) {  // out of memory, or a describe() that throws
    row.status = Error(exception.what()).stage("load").kind(ErrorKind::usage);
  }
  row.index.store(-1, std::memory_order_relaxed);
  if (!row.status.ok()) doomed_ = true;
}

// Loads the sample that the plan has here, or the first replacement that can be loaded. The chain
// of replacements depends on (seed, epoch, position) alone, so that a resumed run walks the same.
Status Slot::fill_row(Row& row, std::int64_t number, std::int64_t planned, const Task& task) {
  const ErrorPolicy& policy = parts_.options.errors;
  std::int64_t position = parts_.sampler.position(data_.step, number);
  row.replaced = row.dropped = false;
  int attempts = policy.drop ? 0 : policy.max_attempts;
  for (int attempt = 0; attempt <= attempts; ++attempt) {
    std::int64_t index =
        attempt == 0 ? planned : parts_.sampler.replacement(data_.step.at, position, attempt);
    row.replaced = attempt > 0;
    if (!policy.fail && parts_.ledger.knows(index)) {
      if (policy.drop) row.failures.push_back(*parts_.ledger.find(index));
      continue;
    }
    task.timer.set_index(index);
    // Rows that take microseconds are not timed one by one.
    row.since_ns.store(rows_per_task_ > 1 ? task.since_ns : now_ns(), std::memory_order_relaxed);
    row.index.store(index, std::memory_order_relaxed);
    Status status = try_load(row, number, index, task.worker);
    if (status.ok()) {
      data_.indices[static_cast<std::size_t>(number)] = index;
      return status;
    }
    Error& error = status.error();
    if (parts_.stop.load(std::memory_order_relaxed)) return status;
    if (error.source().empty()) error.at(parts_.dataset->describe(index));
    if (error.kind() != ErrorKind::data) return status;
    row.failures.push_back({.source = error.source(),
                            .stage = error.stage().empty() ? "load" : error.stage(),
                            .reason = error.reason(),
                            .index = index,
                            .epoch = data_.step.at.epoch,
                            .position = position,
                            .transient = error.is_transient()});
    if (policy.fail) return status;
  }
  if (policy.drop) {
    row.dropped = true;
    return {};
  }
  std::string last = row.failures.empty()
                         ? "all were known to be bad"
                         : row.failures.back().source + ": " + row.failures.back().reason;
  return Error("position " + std::to_string(position) + " of epoch " +
               std::to_string(data_.step.at.epoch) + ": its sample and " +
               std::to_string(policy.max_attempts) + " replacements failed. Last: " + last)
      .kind(ErrorKind::usage)
      .hint("Look at the data set: most of it cannot be loaded");
}

Status Slot::try_load(Row& row, std::int64_t number, std::int64_t index, int worker) {
  const Schema& schema = parts_.schema;
  try {
    bool on_device = parts_.options.device != nullptr;
    for (int field = 0; field < schema.size() && !on_device; ++field) {
      auto f = static_cast<std::size_t>(field);
      if (!parts_.to_float[f]) continue;
      const Buffer& place = parts_.undecoded[static_cast<std::size_t>(worker)][f];
      row.sample.bind(field, Array(schema[field].dtype, schema[field].shape,
                                   Buffer::borrow(place.data(), place.size())));
    }
    LoadContext context{.seed = data_.step.at.seed,
                        .epoch = data_.step.at.epoch,
                        .index = index,
                        .worker = worker,
                        .stop = &parts_.stop};
    row.sample.restart();
    Status status = parts_.dataset->load(index, context, row.sample);
    if (!status.ok()) return status;
    // A field left as it was would show the sample of an earlier batch.
    if (int missing = row.sample.first_unfilled(); missing >= 0) {
      return Error("the dataset did not fill the field '" + schema[missing].name + "'");
    }
    for (int field = 0; field < schema.size() && !on_device; ++field) {
      auto f = static_cast<std::size_t>(field);
      if (!parts_.to_float[f]) continue;
      const Array& pixels = row.sample.value(field);
      std::int64_t channels = pixels.shape()[pixels.shape().rank() - 1];
      auto* to = reinterpret_cast<float*>(memory_[f].host.data()) + number * pixels.elements();
      to_float(*parts_.to_float[f], pixels.as<const std::uint8_t>().data(),
               pixels.elements() / channels, static_cast<int>(channels), to);
    }
    return status;
  } catch (const Error& error) {
    return error;
  } catch (const std::exception& exception) {
    return Error(exception.what());
  } catch (...) {
    return Error("the dataset threw something that is not an exception");
  }
}

void Slot::collate() noexcept {
  stage_ = static_cast<int>(Stage::collate);
  StageClock::Timer timer(parts_.clock, Stage::collate, parts_.pool->this_worker(), batch_number_);
  for (std::int64_t i = 0; i < data_.step.rows && status_.ok(); ++i) {
    status_ = std::exchange(rows_[static_cast<std::size_t>(i)].status, Status());
  }
  if (parts_.stop || !status_.ok()) return;
  try {
    if (parts_.options.errors.drop) leave_out_dropped_rows();
    data_.collated_bytes = data_.padding_bytes = 0;
    for (int field = 0; field < parts_.schema.size(); ++field) collate_field(field);
    data_.padding_bytes = std::max<std::int64_t>(data_.padding_bytes, 0);  // some may be curtailed
  } catch (const Error& error) {
    status_ = error;
  } catch (const std::exception& exception) {
    status_ = Error(exception.what()).stage("collate").kind(ErrorKind::usage);
  }
}

// Moves the rows that hold data to the front, in order. Samples of variable shape stay where they
// are; collate_field() passes over the dropped ones.
void Slot::leave_out_dropped_rows() {
  data_.rows = data_.wrapped = 0;
  for (std::int64_t from = 0; from < data_.step.rows; ++from) {
    if (row(from).dropped) continue;
    std::int64_t to = data_.rows++;
    if (from >= data_.step.rows - data_.step.wrapped) ++data_.wrapped;
    if (from == to) continue;
    data_.indices[static_cast<std::size_t>(to)] = data_.indices[static_cast<std::size_t>(from)];
    for (int field = 0; field < parts_.schema.size(); ++field) {
      auto f = static_cast<std::size_t>(field);
      if (data_.forms[f] != FieldForm::stacked) continue;
      bool float_on_host = parts_.to_float[f] && parts_.options.device == nullptr;
      std::size_t bytes = float_on_host
                              ? static_cast<std::size_t>(parts_.batch_shape(field).elements()) * 4
                              : row_bytes(field);
      std::byte* host = memory_[f].host.data();
      if (bytes == 0) continue;
      std::memcpy(host + static_cast<std::size_t>(to) * bytes,
                  host + static_cast<std::size_t>(from) * bytes, bytes);
    }
  }
  data_.indices.resize(static_cast<std::size_t>(data_.rows));
}

void Slot::collate_field(int field) {
  auto f = static_cast<std::size_t>(field);
  std::int64_t rows = data_.rows;
  const Field& declared = parts_.schema[field];
  FieldMemory& memory = memory_[f];
  if (declared.is_fixed()) {
    Shape shape = parts_.batch_shape(field).with_front(rows);
    const Buffer& shown = parts_.options.device == nullptr ? memory.host
                          : parts_.to_float[f]             ? memory.converted
                                                           : memory.device;
    data_.arrays[f] = Array(parts_.batch_dtype(field), shape, shown);
    return;
  }
  std::vector<Array>& list = data_.lists[f];
  list.clear();
  for (std::int64_t i = 0; i < data_.step.rows; ++i) {
    if (!row(i).dropped) list.push_back(row(i).sample.value(field));
  }
  if (data_.forms[f] == FieldForm::list) {
    data_.texts[f].clear();
    for (const Array& row : list) {
      if (!declared.text) break;
      data_.texts[f].emplace_back(reinterpret_cast<const char*>(row.data()), row.bytes());
    }
    return;
  }
  Shape shape = collated_shape(declared, parts_.collate[f], list);
  auto bytes = static_cast<std::size_t>(shape.elements()) * item_size(declared.dtype);
  if (memory.host.size() < bytes) {
    parts_.budget.take(static_cast<std::int64_t>(bytes - memory.host.size()));
  }
  ensure(memory.host, parts_.host_memory, bytes);
  Array whole(declared.dtype, shape, memory.host);
  collate_into(parts_.collate[f], list, whole);
  data_.lengths[f] = collated_lengths(declared, list, shape);
  for (const Array& one : list) data_.padding_bytes -= static_cast<std::int64_t>(one.bytes());
  data_.collated_bytes += static_cast<std::int64_t>(bytes);
  data_.padding_bytes += static_cast<std::int64_t>(bytes);
  list.clear();
  if (parts_.options.device != nullptr) {
    ensure(memory.device, parts_.device_memory, bytes);
    whole = Array(declared.dtype, shape, memory.device);
  }
  data_.arrays[f] = std::move(whole);
}

void Slot::transfer() noexcept {
  stage_ = static_cast<int>(Stage::transfer);
  if (parts_.options.device == nullptr || parts_.stop || !status_.ok()) return;
  StageClock::Timer timer(parts_.clock, Stage::transfer, parts_.pool->this_worker(), batch_number_);
  try {
    std::vector<Transfer> transfers;
    for (int field = 0; field < parts_.schema.size(); ++field) {
      auto f = static_cast<std::size_t>(field);
      const Array& shown = data_.arrays[f];
      if (data_.forms[f] == FieldForm::list || shown.bytes() == 0) continue;
      Transfer transfer{
          .from = memory_[f].host.data(), .to = memory_[f].device.data(), .bytes = shown.bytes()};
      if (parts_.to_float[f]) {
        const Shape& sample = parts_.schema[field].shape;
        transfer.channels = static_cast<int>(sample[sample.rank() - 1]);
        transfer.pixels = sample.elements() / transfer.channels;
        transfer.rows = data_.rows;
        transfer.bytes = static_cast<std::size_t>(data_.rows) * row_bytes(field);
        transfer.convert = &*parts_.to_float[f];
        transfer.converted = reinterpret_cast<float*>(memory_[f].converted.data());
      }
      transfers.push_back(transfer);
    }
    copying = true;  // before the call: the copy may be done before submit() returns
    data_.ready =
        parts_.options.device->submit(transfers, reusable_, [this] { events_.copied(*this); });
    reusable_.clear();
  } catch (const std::exception& exception) {
    copying = false;
    status_ = Error(exception.what()).stage("transfer").kind(ErrorKind::usage);
  }
}

std::vector<BadSample> Slot::take_failures() {
  std::vector<BadSample> all;
  for (Row& row : rows_) {
    for (BadSample& failure : row.failures) all.push_back(std::move(failure));
    row.failures.clear();
  }
  return all;
}

std::int64_t Slot::replaced_rows() const {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < data_.step.rows; ++i) {
    count += rows_[static_cast<std::size_t>(i)].replaced ? 1 : 0;
  }
  return count;
}

std::int64_t Slot::bytes() const {
  std::size_t bytes = 0;
  for (const Array& array : data_.arrays) bytes += array.bytes();
  for (const auto& list : data_.lists) {
    for (const Array& array : list) bytes += array.bytes();
  }
  return static_cast<std::int64_t>(bytes);
}

void Slot::recycle() {
  if (data_.device != nullptr) {
    if (FencePtr done = parts_.consumer->record(*data_.device))
      reusable_.push_back(std::move(done));
  }
  data_.clear();
}

std::string Slot::describe_progress() const {
  auto stage = static_cast<Stage>(stage_.load());
  std::string text =
      "batch " + std::to_string(batch_number_) + " is at stage '" + name_of(stage) + "'";
  if (stage != Stage::load) return text;
  int shown = 0;
  for (std::size_t i = 0; i < rows_.size() && shown < 4; ++i) {
    std::int64_t index = rows_[i].index.load(std::memory_order_relaxed);
    if (index < 0) continue;
    double seconds =
        static_cast<double>(now_ns() - rows_[i].since_ns.load(std::memory_order_relaxed)) * 1e-9;
    text += (shown++ == 0 ? ": row " : "; row ") + std::to_string(i) + ", sample " +
            std::to_string(index) + " (" + parts_.dataset->describe(index) + ") for " +
            std::to_string(seconds).substr(0, std::to_string(seconds).find('.') + 2) + " s";
  }
  if (shown == 0) text += ": no row of it is being loaded; the pool's threads are busy elsewhere";
  return text;
}

}  // namespace millrace
