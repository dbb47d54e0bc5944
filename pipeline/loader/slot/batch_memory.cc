#include "batch_memory.h"

#include <utility>

namespace millrace::detail {

void BatchMemory::reserve(Buffer& buffer, BufferPool& pool, std::size_t bytes) {
  if (buffer.data() != nullptr && buffer.size() >= bytes && !buffer.shared()) return;
  buffer = Buffer();
  auto [fresh, after] = pool.take(bytes);
  buffer = std::move(fresh);
  if (after) fences.push_back(std::move(after));
}

bool BatchMemory::reserve_rows(const FieldPlan& plan) {
  auto rows = static_cast<std::size_t>(parts_.options.batch_size);
  Buffer& host = buffer(plan, Place::host);
  const std::byte* before = host.data();
  reserve(host, parts_.host_memory, rows * plan.host_bytes);
  if (plan.shown != Place::host) {
    reserve(buffer(plan, Place::device), parts_.device_memory, rows * plan.device_bytes);
  }
  if (plan.shown == Place::converted) {
    reserve(buffer(plan, Place::converted), parts_.device_memory, rows * plan.converted_bytes);
  }
  return host.data() != before;
}

void BatchMemory::reserve_collated(const FieldPlan& plan, std::size_t bytes) {
  Buffer& host = buffer(plan, Place::host);
  if (host.size() < bytes) parts_.budget.take(static_cast<std::int64_t>(bytes - host.size()));
  reserve(host, parts_.host_memory, bytes);
  if (plan.shown == Place::device)
    reserve(buffer(plan, Place::device), parts_.device_memory, bytes);
}

}  // namespace millrace::detail
