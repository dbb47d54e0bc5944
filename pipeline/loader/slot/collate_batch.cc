#include "collate_batch.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace millrace::detail {

namespace {

// Moves the rows that hold data to the front, in order. Samples of variable shape stay where they
// are; list_samples() skips the dropped ones.
void remove_dropped_rows(const LoaderParts& parts, const RowLoader& rows, const BatchMemory& memory,
                         BatchData& data) {
  data.rows = data.wrapped = 0;
  for (std::int64_t from = 0; from < data.step.rows; ++from) {
    if (rows.is_dropped(from)) continue;
    std::int64_t to = data.rows++;
    if (from >= data.step.rows - data.step.wrapped) ++data.wrapped;
    if (from == to) continue;
    data.indices[static_cast<std::size_t>(to)] = data.indices[static_cast<std::size_t>(from)];
    for (const FieldPlan* plan : parts.stacked) {
      if (plan->host_bytes == 0) continue;
      std::memcpy(memory.host_row(*plan, to), memory.host_row(*plan, from), plan->host_bytes);
    }
  }
  data.indices.resize(static_cast<std::size_t>(data.rows));
}

std::vector<Array>& list_samples(const FieldPlan& plan, const RowLoader& rows, BatchData& data) {
  std::vector<Array>& list = data.lists[static_cast<std::size_t>(plan.field)];
  list.clear();
  for (std::int64_t i = 0; i < data.step.rows; ++i) {
    if (!rows.is_dropped(i)) list.push_back(rows.value(i, plan));
  }
  return list;
}

void list_texts(const FieldPlan& plan, const std::vector<Array>& list, BatchData& data) {
  auto& texts = data.texts[static_cast<std::size_t>(plan.field)];
  texts.clear();
  if (!plan.declared.text) return;
  for (const Array& row : list) {
    texts.emplace_back(reinterpret_cast<const char*>(row.data()), row.bytes());
  }
}

// Leaves `list` empty: the samples are in the array now.
void collate_list(const FieldPlan& plan, std::vector<Array>& list, BatchMemory& memory,
                  BatchData& data) {
  const Field& field = plan.declared;
  auto f = static_cast<std::size_t>(plan.field);
  Shape shape = collated_shape(field, plan.collate, list);
  auto bytes = static_cast<std::size_t>(shape.elements()) * item_size(field.dtype);
  memory.reserve_collated(plan, bytes);
  collate_into(plan.collate, list, Array(field.dtype, shape, memory.at(plan, Place::host)));
  data.lengths[f] = collated_lengths(field, list, shape);
  for (const Array& one : list) data.padding_bytes -= static_cast<std::int64_t>(one.bytes());
  data.collated_bytes += static_cast<std::int64_t>(bytes);
  data.padding_bytes += static_cast<std::int64_t>(bytes);
  list.clear();
  data.arrays[f] = Array(field.dtype, shape, memory.at(plan, plan.shown));
}

void collate_field(const FieldPlan& plan, const RowLoader& rows, BatchMemory& memory,
                   BatchData& data) {
  switch (plan.form) {
    case FieldForm::stacked:
      data.arrays[static_cast<std::size_t>(plan.field)] =
          Array(plan.dtype, plan.row_shape.with_front(data.rows), memory.at(plan, plan.shown));
      return;
    case FieldForm::collated:
      return collate_list(plan, list_samples(plan, rows, data), memory, data);
    case FieldForm::list:
      return list_texts(plan, list_samples(plan, rows, data), data);
  }
}

}  // namespace

void collate_batch(const LoaderParts& parts, const RowLoader& rows, BatchMemory& memory,
                   BatchData& data) {
  if (parts.options.errors.drop) remove_dropped_rows(parts, rows, memory, data);
  data.collated_bytes = data.padding_bytes = 0;
  for (const FieldPlan& plan : parts.fields) collate_field(plan, rows, memory, data);
  // Cut samples are longer than their rows.
  data.padding_bytes = std::max<std::int64_t>(data.padding_bytes, 0);
}

std::vector<Transfer> plan_transfers(const LoaderParts& parts, const BatchMemory& memory,
                                     const BatchData& data) {
  std::vector<Transfer> transfers;
  for (const FieldPlan& plan : parts.fields) {
    const Array& shown = data.arrays[static_cast<std::size_t>(plan.field)];
    if (plan.form == FieldForm::list || shown.bytes() == 0) continue;
    Transfer transfer{.from = memory.at(plan, Place::host).data(),
                      .to = memory.at(plan, Place::device).data(),
                      .bytes = shown.bytes()};
    if (plan.to_float) {
      transfer.bytes = static_cast<std::size_t>(data.rows) * plan.device_bytes;
      transfer.convert = &*plan.to_float;
      transfer.converted = reinterpret_cast<float*>(memory.at(plan, Place::converted).data());
      transfer.rows = data.rows;
      transfer.pixels = plan.pixels;
      transfer.channels = plan.channels;
    }
    transfers.push_back(transfer);
  }
  return transfers;
}

}  // namespace millrace::detail
