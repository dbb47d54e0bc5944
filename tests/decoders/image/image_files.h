// What the image tests share: files made by make_images.py beside this header, and access to the
// pixels that Pillow shows of them.
#pragma once

#include "tests/reference.h"

#include <millrace/decoders/image/image.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace millrace {

// Debian's Python, whose Pillow is linked to the libraries that Millrace is linked to.
constexpr const char* debian_python = "/usr/bin/python3";

struct MadeImage {
  std::string name;
  std::int64_t width = 0, height = 0;
};

inline std::vector<MadeImage> make_images(const std::string& interpreter, const std::string& kind,
                                          const std::filesystem::path& folder) {
  std::istringstream lines(
      run_script("tests/decoders/image/make_images.py", kind + " " + folder.string(), interpreter));
  std::vector<MadeImage> images;
  for (MadeImage image; lines >> image.name >> image.width >> image.height;) {
    images.push_back(image);
  }
  return images;
}

inline std::vector<std::byte> pixels_of(const Array& array) {
  return {array.data(), array.data() + array.bytes()};
}

// Decodes with the size that the headers tell; the status is the test's to judge.
inline Status decode_whole(std::span<const std::byte> bytes, const ImageOptions& options,
                           Array& pixels, ImageResult* result = nullptr) {
  ImageInfo info;
  if (Status status = probe_image(bytes, info); !status.ok()) return status;
  const bool swap = !options.orient && info.orientation >= 5;
  const std::int64_t height = swap ? info.width : info.height;
  const std::int64_t width = swap ? info.height : info.width;
  if (height * width > options.limits.image_pixels) {
    pixels = Array::empty(DType::uint8, {0, 0, options.channels});
  } else {
    pixels = Array::empty(DType::uint8, {height, width, options.channels});
  }
  return decode_image(bytes, options, pixels, result);
}

// The largest difference between two pictures of the same size; -1 if their sizes differ.
inline int largest_difference(const std::vector<std::byte>& a, const std::vector<std::byte>& b) {
  if (a.size() != b.size()) return -1;
  int largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(std::to_integer<int>(a[i]) - std::to_integer<int>(b[i])));
  }
  return largest;
}

}  // namespace millrace
