// What examples of decoders/ use and do not declare.
#pragma once

#include "tests/examples/prelude.h"

#include <millrace/decoders.h>

namespace millrace_examples {

extern millrace::Sample sample;
extern millrace::Array images, photo, real, made, real2, made2;
extern std::span<const float> vertices;
extern std::span<const std::int64_t> faces;
extern std::vector<std::uint8_t> frames;
extern millrace::Mesh mesh;
extern millrace::VideoInfo info;
extern std::vector<std::byte> merges_file_bytes;

}  // namespace millrace_examples
