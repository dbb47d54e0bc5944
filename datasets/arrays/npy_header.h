// Private: the header of a .npy file, versions 1 to 3.
#pragma once

#include <millrace/pipeline/data/dtype.h>
#include <millrace/pipeline/data/shape.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace millrace::detail {

struct NpyHeader {
  DType dtype = DType::uint8;
  Shape shape;            // rows first
  std::size_t bytes = 0;  // offset of the elements
};

// numpy has no bfloat16: it is written as uint16.
std::string make_npy_header(DType dtype, const Shape& shape);
// Throws an Error that names `path` if the header is invalid or the elements do not fill the rest
// of the file exactly.
NpyHeader read_npy_header(std::span<const std::byte> file, const std::filesystem::path& path);

}  // namespace millrace::detail
