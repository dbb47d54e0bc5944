// Private: resizes a picture row by row, while it is decoded. Each row is resized horizontally
// while it is still in the cache, and an output row is written as soon as its last source row is
// there. So a picture of any height needs the memory of a few dozen narrow rows.
#pragma once

#include "resize_weights.h"
#include "row_sink.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace millrace::detail {

struct ResizePlan {
  std::shared_ptr<const AxisWeights> columns, rows;

  ResizePlan(std::int64_t source_width, std::int64_t source_height, const ResizeOptions& options,
             std::int64_t kept_width, std::int64_t kept_height);

  // The region of the source that the output depends on.
  Region source() const {
    return {columns->source_first, rows->source_first, columns->source_last, rows->source_last};
  }
  bool is_identity() const { return columns->identity && rows->identity; }
  std::int64_t kept_width() const { return static_cast<std::int64_t>(columns->outputs.size()); }
};

// Receives the rows of plan.source() from top to bottom and passes output rows to `sink`.
class RowResizer : public RowSink {
 public:
  RowResizer(const ResizePlan& plan, int channels, bool flip, RowSink& sink);
  void rows(const std::uint8_t* first, std::size_t stride, std::int64_t count) override;

 private:
  void narrow(const std::uint8_t* first, std::size_t stride, std::int64_t count);
  void emit_finished();
  std::uint8_t* ring_row(std::int64_t y) {
    return ring_.data() + static_cast<std::size_t>(y % ring_rows_) * ring_stride_;
  }

  ResizePlan plan_;
  int channels_;
  bool flip_;
  RowSink& sink_;
  std::int64_t ring_rows_;
  std::size_t ring_stride_;
  std::vector<std::uint8_t>& ring_;
  std::vector<std::uint8_t>& out_;
  std::vector<const std::uint8_t*>& taps_;
  std::int64_t next_source_;     // the next source row
  std::size_t next_output_ = 0;  // the next output row
};

}  // namespace millrace::detail
