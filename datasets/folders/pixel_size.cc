#include <millrace/datasets/folders/pixel_size.h>
#include <millrace/pipeline/base/error.h>

#include <string>

namespace millrace {

void check(const PixelSize& size, const char* who) {
  auto fits = [](std::int64_t side) { return side > 0 && side <= 65'536; };
  if (size.is_own() || (fits(size.height) && fits(size.width))) return;
  throw Error(std::string(who) + ": size must be 0 or from 1 to 65536, but is " +
              std::to_string(size.height) + " x " + std::to_string(size.width))
      .kind(ErrorKind::usage);
}

}  // namespace millrace
