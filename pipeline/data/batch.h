// A batch as the consumer sees it: named arrays, [rows, ...] each. The batch owns a slot of the
// loader's ring and gives it back when its last copy is destroyed. Its arrays stay valid beyond
// that: the loader sees that they are kept and takes other memory.
//
//   for (const Batch& batch : loader) {
//     train(batch["image"], batch["tokens"], batch.mask("tokens"), batch.texts("caption"));
//   }
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

  // A field that was decoded into place or collated into one array.
  const Array& operator[](std::string_view field) const;
  // A field kept as a list: one array per row.
  std::span<const Array> list(std::string_view field) const;
  // A text field: one string per row. Not null-terminated, valid as long as the batch.
  std::span<const std::string_view> texts(std::string_view field) const;
  // For a collated field of variable shape: how much of each row is data, int64 [rows] (or
  // [rows, axes] if several axes vary), and the same as bool [rows, longest].
  const Array& lengths(std::string_view field) const;
  Array mask(std::string_view field) const;

  // Which sample of the data set each row holds, replacements included.
  std::span<const std::int64_t> indices() const;
  // With ErrorPolicy::drop: the samples that would be here too, in order, and why they are not.
  std::span<const BadSample> dropped() const;
  // The share of the collated fields that is padding, 0 to 1; nothing if no field is collated.
  std::optional<double> padding() const;
  // How many rows at the end repeat samples from the epoch's start (see Tail).
  std::int64_t wrapped() const;
  // Where this batch began, and where a run that stops after it goes on.
  const Position& position() const;
  const Position& next_position() const;

  // On a device: work queued on `stream` from now on sees the data, and the slot is reused only
  // after what is on `stream` when the batch is destroyed. Without a device it does nothing.
  void wait_on(void* stream) const;

 private:
  friend class Loader;
  explicit Batch(std::shared_ptr<detail::BatchData> data) : data_(std::move(data)) {}

  std::shared_ptr<detail::BatchData> data_;
};

}  // namespace millrace
