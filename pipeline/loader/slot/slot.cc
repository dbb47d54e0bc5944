#include "slot.h"

#include "collate_batch.h"

#include <algorithm>
#include <utility>

namespace millrace::detail {

Slot::Slot(LoaderParts& parts, Events events)
    : parts_(parts), events_(std::move(events)), memory_(parts), rows_(parts, memory_, data_) {
  data_.schema = &parts.schema;
  data_.device = parts.options.device.get();
  data_.consumer = parts.consumer.get();
  data_.arrays.resize(parts.fields.size());
  data_.lengths.resize(parts.fields.size());
  data_.lists.resize(parts.fields.size());
  data_.texts.resize(parts.fields.size());
  for (const FieldPlan& plan : parts.fields) data_.forms.push_back(plan.form);
  build_graph();
}

void Slot::build_graph() {
  auto collate = graph_.emplace([this] { this->collate(); }).name("collate");
  auto transfer = graph_.emplace([this] { this->transfer(); }).name("transfer");
  auto publish = graph_.emplace([this] { events_.published(*this); }).name("publish");
  std::int64_t rows = parts_.options.batch_size, per_task = rows_.rows_per_task();
  for (std::int64_t i = 0; i < rows; i += per_task) {
    std::int64_t last = std::min(i + per_task, rows) - 1;
    std::string name = last == i ? "row " + std::to_string(i)
                                 : "rows " + std::to_string(i) + " to " + std::to_string(last);
    graph_.emplace([this] { load_rows(); }).name(name).precede(collate);
  }
  collate.precede(transfer);
  transfer.precede(publish);
}

void Slot::prepare(const Step& step, std::int64_t batch_number) {
  data_.step = step;
  data_.rows = step.rows;
  data_.wrapped = step.wrapped;
  batch_number_ = batch_number;
  status_ = Status();
  stage_ = Stage::load;
  rows_.prepare(batch_number);
}

void Slot::load_rows() noexcept {
  const RowLoader::Claim claim = rows_.claim();
  if (claim.is_last) events_.all_claimed(*this);
  if (claim.first < claim.end) rows_.load(claim);
}

void Slot::collate() noexcept {
  stage_ = Stage::collate;
  StageClock::Timer timer(parts_.clock, Stage::collate, parts_.pool->this_worker(), batch_number_);
  status_ = rows_.take_status();
  if (parts_.stop || !status_.ok()) return;
  try {
    collate_batch(parts_, rows_, memory_, data_);
  } catch (const Error& error) {
    status_ = error;
  } catch (const std::exception& exception) {
    status_ = Error(exception.what()).stage("collate").kind(ErrorKind::usage);
  }
}

void Slot::transfer() noexcept {
  stage_ = Stage::transfer;
  if (parts_.options.device == nullptr || parts_.stop || !status_.ok()) return;
  StageClock::Timer timer(parts_.clock, Stage::transfer, parts_.pool->this_worker(), batch_number_);
  try {
    std::vector<Transfer> transfers = plan_transfers(parts_, memory_, data_);
    copying = true;  // before the call: the copy may be done before submit() returns
    data_.ready =
        parts_.options.device->submit(transfers, memory_.fences, [this] { events_.copied(*this); });
    memory_.fences.clear();
  } catch (const std::exception& exception) {
    copying = false;
    status_ = Error(exception.what()).stage("transfer").kind(ErrorKind::usage);
  }
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
    if (FencePtr done = parts_.consumer->record(*data_.device)) {
      memory_.fences.push_back(std::move(done));
    }
  }
  data_.clear();
}

std::string Slot::describe_progress() const {
  Stage stage = stage_.load();
  std::string text =
      "batch " + std::to_string(batch_number_) + " is at stage '" + name_of(stage) + "'";
  return stage == Stage::load ? text + rows_.describe_progress() : text;
}

}  // namespace millrace::detail
