// Private to the loader: the buffers of one batch, up to three per field (see Place). A buffer that
// the consumer still holds when the slot is used again is left to the consumer, and another is
// taken from the pool.
#pragma once

#include <millrace/pipeline/loader/loader_parts.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace millrace::detail {

class BatchMemory {
 public:
  explicit BatchMemory(LoaderParts& parts) : parts_(parts), fields_(parts.fields.size()) {}

  // Reserves all rows of a stacked field. Returns true if the host memory has moved.
  bool reserve_rows(const FieldPlan& plan);
  // Reserves a collated array of `bytes`.
  void reserve_collated(const FieldPlan& plan, std::size_t bytes);

  const Buffer& at(const FieldPlan& plan, Place place) const {
    return fields_[static_cast<std::size_t>(plan.field)][static_cast<std::size_t>(place)];
  }
  // Where a row of a stacked field lies in host memory.
  std::byte* host_row(const FieldPlan& plan, std::int64_t row) const {
    return at(plan, Place::host).data() + static_cast<std::size_t>(row) * plan.host_bytes;
  }

  // The next copy to the device must wait for these fences: until then the consumer's work reads
  // the device memory.
  std::vector<FencePtr> fences;

 private:
  Buffer& buffer(const FieldPlan& plan, Place place) {
    return fields_[static_cast<std::size_t>(plan.field)][static_cast<std::size_t>(place)];
  }
  void reserve(Buffer& buffer, BufferPool& pool, std::size_t bytes);

  LoaderParts& parts_;
  std::vector<std::array<Buffer, 3>> fields_;
};

}  // namespace millrace::detail
