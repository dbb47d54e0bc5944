// A batch: named arrays of shape [rows, ...]. It owns a slot of the loader and gives the slot back
// when its last copy is destroyed. An array that was copied out of it stays valid: the loader then
// uses other memory for the next batch.
//
//   auto bytes_of = [](const Batch& batch) {  // for (const Batch& batch : loader) ...
//     return batch["image"].bytes() + batch.texts("caption")[0].size();
//   };
#pragma once

#include <millrace/pipeline/data/array.h>
#include <millrace/pipeline/device/device.h>
#include <millrace/pipeline/loader/ledger.h>
#include <millrace/pipeline/order/sampler.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

namespace millrace {

namespace detail {
struct BatchData;
}  // namespace detail

class Batch {
 public:
  std::int64_t size() const;

  // A field that is one array: of fixed shape, or collated.
  const Array& operator[](std::string_view field) const;
  // A field that is a list: one array per row.
  std::span<const Array> list(std::string_view field) const;
  // A text field: one string per row, not null-terminated, valid as long as the batch.
  std::span<const std::string_view> texts(std::string_view field) const;
  // For a collated field: the length of each row without padding, int64 [rows] (or [rows, axes] if
  // several axes vary), and the same as a mask, bool [rows, longest].
  const Array& lengths(std::string_view field) const;
  Array mask(std::string_view field) const;

  // The index of the sample in each row, replacements included.
  std::span<const std::int64_t> indices() const;
  // With ErrorPolicy::drop: the samples that were left out of this batch, in order, and why.
  std::span<const BadSample> dropped() const;
  // The fraction of the collated fields that is padding; nothing if no field is collated.
  std::optional<double> padding() const;
  // Number of rows at the end that repeat samples from the start of the epoch (see Tail).
  std::int64_t wrapped() const;
  // The position of this batch, and where to continue a run that stops after it.
  const Position& position() const;
  const Position& next_position() const;

  // With a device: work queued on `stream` after this call waits for the copy to the device. The
  // loader reuses the memory only after the work that is on `stream` when the batch is destroyed.
  // Without a device it does nothing.
  void wait_on(void* stream) const;

 private:
  friend class Loader;
  explicit Batch(std::shared_ptr<detail::BatchData> data) : data_(std::move(data)) {}

  std::shared_ptr<detail::BatchData> data_;
};

}  // namespace millrace
