// WebP through libwebp.
#include "fuzz_image.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (!millrace::begins_with(data, size, "RIFF")) return 0;
  millrace::fuzz_image(std::as_bytes(std::span(data, size)));
  return 0;
}
