// JPEG through libjpeg-turbo, whole, cropped and scaled.
#include "fuzz_image.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (!millrace::begins_with(data, size, "\xFF\xD8\xFF")) return 0;
  millrace::fuzz_image(std::as_bytes(std::span(data, size)));
  return 0;
}
