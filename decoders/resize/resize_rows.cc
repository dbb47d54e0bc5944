#include "resize_rows.h"

#include "resize_kernels.h"

#include <algorithm>
#include <cstring>

namespace millrace::detail {
namespace {

constexpr std::int64_t rows_between_emits = 16;

// Copies columns: the axis keeps its size, or the filter is `nearest`.
void copy_columns(const AxisWeights& columns, int channels, bool flip, const std::uint8_t* source,
                  std::uint8_t* to) {
  const std::size_t width = columns.outputs.size(), pixel = static_cast<std::size_t>(channels);
  if (columns.identity && !flip) {
    std::memcpy(to, source, width * pixel);
    return;
  }
  for (std::size_t x = 0; x < width; ++x) {
    const AxisWeights::Output& output = columns.outputs[flip ? width - 1 - x : x];
    const std::uint8_t* from =
        source + std::ptrdiff_t{output.first - columns.source_first} * channels;
    for (std::size_t c = 0; c < pixel; ++c) to[x * pixel + c] = from[c];
  }
}

bool is_copied(const AxisWeights& axis) {
  return axis.identity || axis.nearest;
}

}  // namespace

Scratch& Scratch::of_this_thread() {
  thread_local Scratch scratch;
  return scratch;
}

void Scratch::trim() {
  constexpr std::size_t kept_bytes = 32 << 20;
  for (auto* memory : {&band, &raster, &turned, &shown, &converted, &ring, &out, &placed}) {
    if (memory->capacity() > kept_bytes) std::vector<std::uint8_t>().swap(*memory);
  }
}

ResizePlan::ResizePlan(std::int64_t source_width, std::int64_t source_height,
                       const ResizeOptions& options, std::int64_t kept_width,
                       std::int64_t kept_height)
    : columns(axis_weights(source_width, options.width > 0 ? options.width : kept_width,
                           options.left, kept_width, options.filter)),
      rows(axis_weights(source_height, options.height > 0 ? options.height : kept_height,
                        options.top, kept_height, options.filter)) {}

RowResizer::RowResizer(const ResizePlan& plan, int channels, bool flip, RowSink& sink)
    : plan_(plan),
      channels_(channels),
      flip_(flip),
      sink_(sink),
      ring_rows_(plan.rows->max_taps + rows_between_emits),
      ring_stride_(static_cast<std::size_t>(plan.kept_width() * channels) + row_padding),
      ring_(Scratch::of_this_thread().ring),
      out_(Scratch::of_this_thread().out),
      taps_(Scratch::of_this_thread().taps),
      next_source_(plan.rows->source_first) {
  Scratch::ensure(ring_, static_cast<std::size_t>(ring_rows_) * ring_stride_);
  Scratch::ensure(out_, ring_stride_);
}

void RowResizer::rows(const std::uint8_t* first, std::size_t stride, std::int64_t count) {
  while (count > 0) {
    const std::int64_t now = std::min(count, rows_between_emits);
    narrow(first, stride, now);
    next_source_ += now;
    emit_finished();
    first += static_cast<std::size_t>(now) * stride;
    count -= now;
  }
}

void RowResizer::narrow(const std::uint8_t* first, std::size_t stride, std::int64_t count) {
  for (std::int64_t y = 0; y < count;) {
    const std::uint8_t* source = first + static_cast<std::size_t>(y) * stride;
    if (is_copied(*plan_.columns)) {
      copy_columns(*plan_.columns, channels_, flip_, source, ring_row(next_source_ + y));
      ++y;
      continue;
    }
    const std::uint8_t* from[rows_at_once];
    std::uint8_t* to[rows_at_once];
    const std::int64_t now = std::min<std::int64_t>(rows_at_once, count - y);
    for (std::int64_t i = 0; i < rows_at_once; ++i) {
      const std::int64_t row = std::min(i, now - 1);
      from[i] = source + static_cast<std::size_t>(row) * stride;
      to[i] = ring_row(next_source_ + y + row);
    }
    narrow_rows(*plan_.columns, channels_, flip_, from, to);
    y += now;
  }
}

void RowResizer::emit_finished() {
  const AxisWeights& rows = *plan_.rows;
  for (; next_output_ < rows.outputs.size(); ++next_output_) {
    const AxisWeights::Output& output = rows.outputs[next_output_];
    if (output.first + output.taps > next_source_) return;
    if (is_copied(rows)) {
      sink_.rows(ring_row(output.first), ring_stride_, 1);
      continue;
    }
    taps_.clear();
    for (std::int32_t tap = 0; tap < output.taps + 1; ++tap) {
      // An odd last tap is paired with itself at weight zero.
      taps_.push_back(ring_row(output.first + std::min(tap, output.taps - 1)));
    }
    blend_rows(rows, output, taps_.data(), ring_stride_ - row_padding, out_.data());
    sink_.rows(out_.data(), ring_stride_, 1);
  }
}

}  // namespace millrace::detail
