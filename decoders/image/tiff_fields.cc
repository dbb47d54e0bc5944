#include "image_reader.h"

#include <vector>

namespace millrace::detail {
namespace {

// Reads numbers of a TIFF structure in the byte order given by its first two bytes.
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

// One field of the first directory: its numbers, one by one.
class Field {
 public:
  Field(const TiffNumbers& numbers, std::size_t entry) : numbers_(numbers) {
    constexpr std::uint32_t short_type = 3;
    tag_ = numbers.u16(entry);
    size_ = numbers.u16(entry + 2) == short_type ? 2 : 4;
    count_ = numbers.u32(entry + 4);
    at_ = size_ * count_ <= 4 ? entry + 8 : numbers.u32(entry + 8);
  }
  std::uint32_t tag() const { return tag_; }
  std::size_t count() const { return count_; }
  bool is_there() const { return numbers_.has(at_, size_ * count_); }
  std::size_t operator[](std::size_t i) const {
    return size_ == 2 ? numbers_.u16(at_ + 2 * i) : numbers_.u32(at_ + 4 * i);
  }

 private:
  const TiffNumbers& numbers_;
  std::uint32_t tag_ = 0;
  std::size_t size_ = 0, count_ = 0, at_ = 0;
};

// Calls visit(field) for each field of the first directory. Returns false if it is truncated.
template <typename Visit>
bool each_field(const TiffNumbers& numbers, Visit visit) {
  constexpr std::size_t entry_bytes = 12;
  if (!numbers.has(4, 4)) return false;
  const std::size_t directory = numbers.u32(4);
  if (!numbers.has(directory, 2)) return false;
  const std::size_t entries = numbers.u16(directory);
  for (std::size_t i = 0; i < entries; ++i) {
    const std::size_t entry = directory + 2 + i * entry_bytes;
    if (!numbers.has(entry, entry_bytes)) return false;
    visit(Field(numbers, entry));
  }
  return true;
}

}  // namespace

int tiff_orientation(Bytes tiff) {
  constexpr std::uint32_t orientation_tag = 0x0112;
  std::size_t found = 1;
  if (tiff.size() < 8) return 1;
  const TiffNumbers numbers(tiff);
  each_field(numbers, [&](const Field& field) {
    if (field.tag() == orientation_tag && field.count() == 1) found = field[0];
  });
  return found >= 1 && found <= 8 ? static_cast<int>(found) : 1;
}

TiffFacts tiff_facts(Bytes tiff) {
  enum : std::uint32_t {
    compression = 259,
    meaning = 262,
    fill_order = 266,
    samples = 277,
    tile_width = 322,
    extra_samples = 338,
    reference_black_white = 532,
  };
  TiffFacts facts;
  if (tiff.size() < 8) return facts;
  const TiffNumbers numbers(tiff);
  each_field(numbers, [&](const Field& field) {
    if (!field.is_there() || field.count() == 0) return;
    const auto value = static_cast<int>(field[0] & 0xFFFF);
    if (field.tag() == compression) facts.compression = value;
    if (field.tag() == meaning) facts.meaning = value;
    if (field.tag() == fill_order) facts.low_bits_first = value == 2;
    if (field.tag() == samples) facts.samples = value;
    if (field.tag() == tile_width) facts.tiled = true;
    if (field.tag() == extra_samples) facts.premultiplied = value == 1;
    if (field.tag() == reference_black_white) facts.full_range = field[0] == 0;  // black's value
  });
  return facts;
}

bool tiff_is_whole(Bytes tiff) {
  constexpr std::uint32_t strip_offsets = 273, strip_lengths = 279, tile_offsets = 324,
                          tile_lengths = 325;
  std::vector<std::size_t> offsets, lengths;
  if (tiff.size() < 8) return false;
  const TiffNumbers numbers(tiff);
  bool whole = each_field(numbers, [&](const Field& field) {
    const bool is_offset = field.tag() == strip_offsets || field.tag() == tile_offsets;
    const bool is_length = field.tag() == strip_lengths || field.tag() == tile_lengths;
    if ((!is_offset && !is_length) || !field.is_there()) return;
    for (std::size_t i = 0; i < field.count(); ++i) {
      (is_offset ? offsets : lengths).push_back(field[i]);
    }
  });
  for (std::size_t i = 0; i < offsets.size() && i < lengths.size(); ++i) {
    whole = whole && numbers.has(offsets[i], lengths[i]);
  }
  return whole && !offsets.empty();
}

}  // namespace millrace::detail
