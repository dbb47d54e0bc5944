#include <millrace/decoders/image_reader.h>

namespace millrace {
namespace {

// Numbers of a TIFF structure, in the byte order that its first two bytes name.
class TiffNumbers {
 public:
  explicit TiffNumbers(Bytes bytes) : bytes_(bytes), big_(raw(bytes)[0] == 'M') {}

  bool has(std::size_t at, std::size_t count) const {
    return at <= bytes_.size() && count <= bytes_.size() - at;
  }
  std::uint32_t u16(std::size_t at) const {
    const std::uint8_t* p = raw(bytes_) + at;
    return big_ ? static_cast<std::uint32_t>(p[0] << 8 | p[1])
                : static_cast<std::uint32_t>(p[1] << 8 | p[0]);
  }
  std::uint32_t u32(std::size_t at) const {
    return big_ ? u16(at) << 16 | u16(at + 2) : u16(at + 2) << 16 | u16(at);
  }

 private:
  Bytes bytes_;
  bool big_;
};

}  // namespace

int tiff_orientation(Bytes tiff) {
  constexpr std::uint32_t orientation_tag = 0x0112, short_type = 3;
  constexpr std::size_t entry_bytes = 12;
  if (tiff.size() < 8) return 1;
  const TiffNumbers numbers(tiff);
  const std::size_t directory = numbers.u32(4);
  if (!numbers.has(directory, 2)) return 1;
  const std::size_t entries = numbers.u16(directory);
  for (std::size_t i = 0; i < entries; ++i) {
    const std::size_t entry = directory + 2 + i * entry_bytes;
    if (!numbers.has(entry, entry_bytes)) return 1;
    if (numbers.u16(entry) != orientation_tag) continue;
    const std::uint32_t value =
        numbers.u16(entry + 2) == short_type ? numbers.u16(entry + 8) : numbers.u32(entry + 8);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

}  // namespace millrace
