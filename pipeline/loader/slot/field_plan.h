// Private to the loader: what happens to one field of a batch. It is decided once, when the loader
// is made; rows and batches only look it up.
#pragma once

#include <millrace/pipeline/data/schema.h>
#include <millrace/pipeline/loader/loader_options.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace millrace::detail {

// How a field appears in a batch: one array of fixed shape, one array collated from samples of
// several shapes, or a list of arrays.
enum class FieldForm { stacked, collated, list };
// A field has up to three buffers per batch: on the host, its copy on the device, and the device's
// conversion to float.
enum class Place : std::uint8_t { host, device, converted };

struct FieldPlan {
  int field = 0;  // its place in the schema
  Field declared;
  FieldForm form = FieldForm::stacked;
  Collate collate{};
  std::optional<ToFloat> to_float{};
  bool float_on_host = false;  // to_float runs when a row is loaded, not on the device
  Place shown = Place::host;   // the buffer that the consumer sees
  // One row of a stacked field as the consumer sees it.
  Shape row_shape{};
  DType dtype = DType::uint8;
  // Bytes of one row of a stacked field: as the data set writes it, and in each of the buffers.
  std::size_t loaded_bytes = 0, host_bytes = 0, device_bytes = 0, converted_bytes = 0;
  // For to_float: one row is pixels x channels values.
  std::int64_t pixels = 0;
  int channels = 0;
};

// One plan per field, in the order of the schema. Throws an Error that names the field if the
// options do not fit it.
std::vector<FieldPlan> plan_fields(const Schema& schema, const LoaderOptions& options);

}  // namespace millrace::detail
