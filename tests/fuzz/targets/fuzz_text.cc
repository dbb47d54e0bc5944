#include <millrace/decoders/text/text.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string text;
  millrace::Status status = millrace::decode_text(std::as_bytes(std::span(data, size)), text);
  // What was accepted must be well-formed.
  if (status.ok() && millrace::first_invalid_utf8(text) != std::string::npos) std::abort();
  return 0;
}
