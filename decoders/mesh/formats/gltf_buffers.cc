// Loads glTF buffers that are not in the GLB itself: from a data URI, or from a file beside the
// document. See Note [files beside a document].
#include <millrace/decoders/mesh/formats/gltf_data.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace millrace::detail {

namespace {

namespace fs = std::filesystem;

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// "my%20file.bin" -> "my file.bin"
std::string percent_decode(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    int high = text[i] == '%' && i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
    int low = high >= 0 ? hex_digit(text[i + 2]) : -1;
    if (low >= 0) {
      result += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      result += text[i];
    }
  }
  return result;
}

constexpr std::array<std::int16_t, 256> base64_values = [] {
  std::array<std::int16_t, 256> table{};
  table.fill(-1);
  std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (std::size_t i = 0; i < alphabet.size(); ++i) {
    table[static_cast<unsigned char>(alphabet[i])] = static_cast<std::int16_t>(i);
  }
  return table;
}();

// Note [files beside a document]
// A document may name any file. Only relative names are followed, and only if the file, with
// symbolic links resolved, is in the folder of the document or below. Otherwise a hostile mesh
// could copy /etc/passwd into a cache.
fs::path resolve_inside(const fs::path& folder, const std::string& name) {
  fs::path relative(name);
  if (name.empty() || name.find('\0') != name.npos || relative.is_absolute()) return {};
  if (name.find('\\') != name.npos) return {};
  for (const fs::path& part : relative) {
    if (part == "..") return {};
  }
  std::error_code problem;
  fs::path home = fs::canonical(folder, problem);
  if (problem) return {};
  fs::path target = fs::weakly_canonical(home / relative, problem);
  if (problem) return {};
  fs::path way = target.lexically_relative(home);
  if (way.empty() || *way.begin() == "..") return {};
  return target;
}

}  // namespace

std::optional<std::string> decode_base64(std::string_view text) {
  while (text.ends_with('=')) text.remove_suffix(1);
  if (text.size() % 4 == 1) return std::nullopt;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3 + 3);
  std::uint32_t bits = 0;
  int held = 0;
  for (char c : text) {
    int value = base64_values[static_cast<unsigned char>(c)];
    if (value < 0) return std::nullopt;
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    held += 6;
    if (held >= 8) {
      held -= 8;
      bytes += static_cast<char>(bits >> held & 0xFFU);
    }
  }
  return bytes;
}

std::string_view GltfData::load_uri(std::string_view uri, std::uint64_t index) {
  std::optional<std::string>& loaded = loaded_[index];
  if (loaded) return *loaded;
  if (!uri.starts_with("data:")) {
    loaded = external(uri);
    return *loaded;
  }
  std::size_t comma = uri.find(',');
  if (comma == uri.npos || !uri.substr(0, comma).ends_with(";base64")) {
    fail("a data URI is not base64");
  }
  loaded = decode_base64(uri.substr(comma + 1));
  if (!loaded) fail("a data URI is not base64");
  return *loaded;
}

std::string GltfData::external(std::string_view uri) {
  const fs::path& folder = builder_.options().folder;
  std::string name = percent_decode(uri.substr(0, 4096));
  if (folder.empty()) {
    fail("its buffer is in another file, \"" + name.substr(0, 200) +
         "\", and no folder was given to read it from");
  }
  if (name.find("://") != name.npos)
    fail("its buffer has an address outside: " + name.substr(0, 200));
  fs::path path = resolve_inside(folder, name);
  if (path.empty()) {
    fail("its buffer \"" + name.substr(0, 200) + "\" lies outside the file's own folder: refused");
  }
  std::error_code problem;
  if (!fs::is_regular_file(path, problem)) {
    fail("its buffer \"" + name.substr(0, 200) + "\" is missing");
  }
  auto size = fs::file_size(path, problem);
  // The sum over all buffers, since a document may name the same file many times.
  loaded_bytes_ += problem ? 0 : size;
  if (problem ||
      loaded_bytes_ > static_cast<std::uintmax_t>(builder_.options().limits.decoded_bytes)) {
    fail("its buffer \"" + name.substr(0, 200) + "\" is too large");
  }
  std::string bytes(size, '\0');
  std::ifstream file(path, std::ios::binary);
  if (!file.read(bytes.data(), static_cast<std::streamsize>(size))) {
    fail("its buffer \"" + name.substr(0, 200) + "\" cannot be read");
  }
  return bytes;
}

}  // namespace millrace::detail
