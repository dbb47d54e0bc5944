// Any image: the first bytes choose among all formats, GIF and those of libav included.
#include "fuzz_image.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  millrace::fuzz_image(std::as_bytes(std::span(data, size)));
  return 0;
}
