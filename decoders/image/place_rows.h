// Private: the last sink of a transform. It writes rows of pixels into the batch, as planes or
// interleaved, as bytes or as floats in [0, 1].
#pragma once

#include <millrace/decoders/image/image_transform.h>
#include <millrace/decoders/resize/row_sink.h>

#include <cstdint>
#include <vector>

namespace millrace::detail {

// Splits an RGB row into a row per colour. Reads and writes whole vectors: all four rows need 64
// bytes of padding after their end.
void split_rgb_row(const std::uint8_t* row, std::int64_t pixels, std::uint8_t* red,
                   std::uint8_t* green, std::uint8_t* blue);

class PlaceRows : public RowSink {
 public:
  // Rows have `channels_in` channels: as many as the destination, or one that is copied to all
  // three. `weighted`: colours are multiplied by alpha, which is undone here.
  PlaceRows(const Array& destination, Layout layout, int channels_in, int channels_out,
            bool weighted);
  void rows(const std::uint8_t* first, std::size_t stride, std::int64_t count) override;

 private:
  void place(const std::uint8_t* row);
  void store(const std::uint8_t* values, std::int64_t count, std::int64_t at);

  std::byte* to_;
  bool floats_, planes_, weighted_;
  int in_, out_;
  std::int64_t width_, plane_;
  std::int64_t y_ = 0;
  std::vector<std::uint8_t>& memory_;
};

}  // namespace millrace::detail
