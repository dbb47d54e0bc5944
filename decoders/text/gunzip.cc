#include <millrace/decoders/text/gunzip.h>

#include <algorithm>
#include <limits>

#include <zlib.h>

namespace millrace::detail {

bool is_gzip(std::span<const std::byte> bytes) {
  return bytes.size() >= 2 && bytes[0] == std::byte{0x1F} && bytes[1] == std::byte{0x8B};
}

Status gunzip(std::span<const std::byte> bytes, std::int64_t max_bytes, std::string& out) {
  if (bytes.size() > std::numeric_limits<uInt>::max()) {
    return Error("a gzip file of more than 4 GB").stage("gzip").hint("Unpack it first");
  }
  z_stream stream{};
  constexpr int gzip_only = 16 + MAX_WBITS;
  if (inflateInit2(&stream, gzip_only) != Z_OK) return Error("no memory").stage("gzip");
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes.data()));  // NOLINT
  stream.avail_in = static_cast<uInt>(bytes.size());
  out.clear();
  int result = Z_OK;
  bool fits = true;
  while (result == Z_OK && fits) {
    char chunk[65536];
    stream.next_out = reinterpret_cast<Bytef*>(chunk);
    stream.avail_out = sizeof chunk;
    result = inflate(&stream, Z_NO_FLUSH);
    std::size_t got = sizeof chunk - stream.avail_out;
    fits = static_cast<std::int64_t>(out.size() + got) <= max_bytes;
    if (fits) out.append(chunk, got);
    // Concatenated gzip files decompress to their concatenated contents.
    const bool more = result == Z_STREAM_END && is_gzip(bytes.last(stream.avail_in));
    if (more) result = inflateReset(&stream);
  }
  inflateEnd(&stream);
  if (!fits) {
    return Error("unpacks to more than the " + std::to_string(max_bytes) + " bytes allowed")
        .stage("gzip")
        .hint("Raise the limit if you trust the file");
  }
  if (result == Z_STREAM_END) return {};
  return Error(result == Z_BUF_ERROR ? "the file ends too early" : "its data are damaged")
      .stage("gzip")
      .hint("Copy the file again; gzip -t tests it");
}

}  // namespace millrace::detail
