// PNG through libpng.
#include "fuzz_image.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (!millrace::begins_with(data, size, "\x89PNG")) return 0;
  millrace::fuzz_image(std::as_bytes(std::span(data, size)));
  return 0;
}
