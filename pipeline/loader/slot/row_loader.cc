#include "row_loader.h"

#include <algorithm>
#include <utility>

namespace millrace::detail {

RowLoader::RowLoader(LoaderParts& parts, BatchMemory& memory, BatchData& data)
    : parts_(parts),
      memory_(memory),
      data_(data),
      rows_per_task_(std::clamp<std::int64_t>(parts.dataset->samples_per_task(), 1,
                                              parts.options.batch_size)) {
  for (std::int64_t i = 0; i < parts.options.batch_size; ++i) {
    rows_.emplace_back(Sample::unbound(parts.schema)).sample.set_budget(&parts.budget);
  }
  for (const FieldPlan* plan : parts.stacked) bind_rows(*plan);
}

// The data set writes every row of a stacked field to its place in the batch. A field that becomes
// float on the host is bound to memory of the worker instead, when its row is loaded.
void RowLoader::bind_rows(const FieldPlan& plan) {
  bool moved = memory_.reserve_rows(plan);
  if (plan.float_on_host || !moved) return;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    std::byte* place = memory_.host_row(plan, static_cast<std::int64_t>(i));
    rows_[i].sample.bind(plan.field, Array(plan.declared.dtype, plan.declared.shape,
                                           Buffer::borrow(place, plan.loaded_bytes)));
  }
}

void RowLoader::prepare(std::int64_t batch_number) {
  batch_number_ = batch_number;
  claimed_ = 0;
  failed_ = false;
  data_.indices.assign(static_cast<std::size_t>(data_.step.rows), -1);
  for (const FieldPlan* plan : parts_.stacked) bind_rows(*plan);
  order_by_cost();
}

// Starts with the samples that take longest, so that no worker is left with a long one at the end.
// Where a row lies in the batch does not depend on it.
void RowLoader::order_by_cost() {
  longest_first_.clear();
  if (rows_per_task_ > 1) return;
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

RowLoader::Claim RowLoader::claim() {
  std::int64_t first = claimed_.fetch_add(rows_per_task_, std::memory_order_relaxed);
  std::int64_t rows = data_.step.rows;
  if (first >= rows) return {};  // a short batch has fewer rows than the graph
  std::int64_t end = std::min(first + rows_per_task_, rows);
  bool is_last = end == rows;
  if (!longest_first_.empty()) {
    first = longest_first_[static_cast<std::size_t>(first)].second;
    end = first + 1;
  }
  return {first, end, is_last};
}

void RowLoader::load(const Claim& claim) noexcept {
  int worker = parts_.pool->this_worker();
  StageClock::Timer timer(parts_.clock, Stage::load, worker, batch_number_, claim.first);
  Task task{timer, std::max(worker, 0), now_ns()};
  Sampler::Order order(parts_.sampler, data_.step);
  std::int64_t number = claim.first, index = order.index(number);
  for (; number < claim.end && !is_stopping(); ++number) {
    std::int64_t next = number + 1 < claim.end ? order.index(number + 1) : -1;
    if (next >= 0) parts_.dataset->expect(next, data_.step.at.epoch);
    load_row(number, index, task);
    index = next;
  }
  timer.set_count(number - claim.first);
}

// A task body never throws: the error is kept as the row's status, and next() throws it.
void RowLoader::load_row(std::int64_t number, std::int64_t index, const Task& task) noexcept {
  Row& row = rows_[static_cast<std::size_t>(number)];
  try {
    row.status = fill_row(row, number, index, task);
  } catch (const std::exception& exception) {  // out of memory, or a describe() that throws
    row.status = Error(exception.what()).stage("load").kind(ErrorKind::usage);
  }
  row.index.store(-1, std::memory_order_relaxed);
  if (!row.status.ok()) failed_ = true;
}

// Loads the planned sample, or the first replacement that can be loaded. The sequence of
// replacements depends on (seed, epoch, position) alone, so a resumed run finds the same ones.
Status RowLoader::fill_row(Row& row, std::int64_t number, std::int64_t planned, const Task& task) {
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
    Status status = load_sample(row, number, index, task.worker);
    if (status.ok()) {
      data_.indices[static_cast<std::size_t>(number)] = index;
      return status;
    }
    Error& error = status.error();
    if (parts_.stop.load(std::memory_order_relaxed)) return status;
    if (error.source().empty()) error.at(parts_.dataset->describe(index));
    if (error.kind() != ErrorKind::data) return status;
    record_failure(row, index, position, error);
    if (policy.fail) return status;
  }
  row.dropped = policy.drop;
  return policy.drop ? Status() : no_replacement(row, position);
}

void RowLoader::record_failure(Row& row, std::int64_t index, std::int64_t position,
                               Error& error) const {
  row.failures.push_back({.source = error.source(),
                          .stage = error.stage().empty() ? "load" : error.stage(),
                          .reason = error.reason(),
                          .index = index,
                          .epoch = data_.step.at.epoch,
                          .position = position,
                          .transient = error.is_transient()});
}

Error RowLoader::no_replacement(const Row& row, std::int64_t position) const {
  std::string last = row.failures.empty()
                         ? "all were known to be bad"
                         : row.failures.back().source + ": " + row.failures.back().reason;
  return Error("position " + std::to_string(position) + " of epoch " +
               std::to_string(data_.step.at.epoch) + ": its sample and " +
               std::to_string(parts_.options.errors.max_attempts) +
               " replacements failed. Last: " + last)
      .kind(ErrorKind::usage)
      .hint("Look at the data set: most of it cannot be loaded");
}

Status RowLoader::load_sample(Row& row, std::int64_t number, std::int64_t index, int worker) {
  try {
    bind_pixels(row, worker);
    LoadContext context{.seed = data_.step.at.seed,
                        .epoch = data_.step.at.epoch,
                        .index = index,
                        .worker = worker,
                        .stop = &parts_.stop};
    row.sample.restart();
    Status status = parts_.dataset->load(index, context, row.sample);
    if (!status.ok()) return status;
    // A field that was not filled would show the sample of an earlier batch.
    if (int missing = row.sample.first_unfilled(); missing >= 0) {
      return Error("the dataset did not fill the field '" + parts_.schema[missing].name + "'");
    }
    convert_pixels(row, number);
    return status;
  } catch (const Error& error) {
    return error;
  } catch (const std::exception& exception) {
    return Error(exception.what());
  } catch (...) {
    return Error("the dataset threw something that is not an exception");
  }
}

void RowLoader::bind_pixels(Row& row, int worker) const {
  for (std::size_t i = 0; i < parts_.converted.size(); ++i) {
    const FieldPlan& plan = *parts_.converted[i];
    const Buffer& place = parts_.pixels[static_cast<std::size_t>(worker)][i];
    row.sample.bind(plan.field, Array(plan.declared.dtype, plan.declared.shape,
                                      Buffer::borrow(place.data(), place.size())));
  }
}

void RowLoader::convert_pixels(const Row& row, std::int64_t number) const {
  for (const FieldPlan* plan : parts_.converted) {
    auto* to = reinterpret_cast<float*>(memory_.host_row(*plan, number));
    to_float(*plan->to_float, row.sample.value(plan->field).as<const std::uint8_t>().data(),
             plan->pixels, plan->channels, to);
  }
}

Status RowLoader::take_status() {
  for (std::int64_t i = 0; i < data_.step.rows; ++i) {
    Status status = std::exchange(rows_[static_cast<std::size_t>(i)].status, Status());
    if (!status.ok()) return status;
  }
  return {};
}

std::vector<BadSample> RowLoader::take_failures() {
  std::vector<BadSample> all;
  for (Row& row : rows_) {
    for (BadSample& failure : row.failures) all.push_back(std::move(failure));
    row.failures.clear();
  }
  return all;
}

std::int64_t RowLoader::replaced_rows() const {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < data_.step.rows; ++i) {
    count += rows_[static_cast<std::size_t>(i)].replaced ? 1 : 0;
  }
  return count;
}

std::string RowLoader::describe_progress() const {
  std::string text;
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
  if (shown > 0) return text;
  return ": none of its rows is being loaded; the threads of the pool do other work";
}

}  // namespace millrace::detail
