#include "image_reader.h"

#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstring>

#include <png.h>

namespace millrace::detail {
namespace {

// See Note [libjpeg error handling]: guarded functions, trivial locals, the session outside.
struct Session {
  png_structp png = nullptr;
  png_infop info = nullptr;
  const std::uint8_t* data = nullptr;
  std::size_t left = 0;
  char fatal[256] = {};

  Session() = default;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() { png_destroy_read_struct(&png, &info, nullptr); }
};

[[noreturn]] void on_error(png_structp png, png_const_charp message) {
  auto& session = *static_cast<Session*>(png_get_error_ptr(png));
  std::snprintf(session.fatal, sizeof session.fatal, "%s", message);
  png_longjmp(png, 1);
}

void on_warning(png_structp, png_const_charp) {}

void on_read(png_structp png, png_bytep to, std::size_t count) {
  auto& session = *static_cast<Session*>(png_get_io_ptr(png));
  if (count > session.left) png_error(png, "the file ends too early");
  std::memcpy(to, session.data, count);
  session.data += count;
  session.left -= count;
}

// Reads up to the first pixel and requests 8 bits per channel and no palette.
bool open(Session& session, Bytes bytes, bool with_alpha, const DecodeLimits& limits) {
  session.data = raw(bytes);
  session.left = bytes.size();
  session.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &session, on_error, on_warning);
  if (session.png == nullptr) return false;
  png_structp png = session.png;
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  session.info = png_create_info_struct(png);
  png_set_read_fn(png, &session, on_read);
  png_set_user_limits(png, 0x7FFFFFFF, 0x7FFFFFFF);  // ours were checked
  png_set_chunk_malloc_max(png, static_cast<png_alloc_size_t>(limits.png_chunk_bytes));
  // The only optional chunk that changes pixels is tRNS.
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  png_read_info(png, session.info);
  png_set_expand(png);
  png_set_strip_16(png);  // the upper byte, as Pillow reads 16-bit colour
  png_set_interlace_handling(png);
  if (with_alpha && (png_get_color_type(png, session.info) & PNG_COLOR_MASK_ALPHA) == 0 &&
      png_get_valid(png, session.info, PNG_INFO_tRNS) == 0) {
    png_set_add_alpha(png, 0xFF, PNG_FILLER_AFTER);  // libpng found the transparency chunk bad
  }
  png_read_update_info(png, session.info);
  return true;
}

// Returns the number of rows read into `rows`, at most `count`.
std::int64_t read_rows(Session& session, std::uint8_t* rows, std::size_t stride,
                       std::int64_t count) {
  volatile std::int64_t done = 0;
  if (setjmp(png_jmpbuf(session.png)) != 0) return done;
  while (done < count) {
    png_read_row(session.png, rows + static_cast<std::size_t>(done) * stride, nullptr);
    done = done + 1;
  }
  return done;
}

bool finish(Session& session) {
  if (setjmp(png_jmpbuf(session.png)) != 0) return false;
  png_read_end(session.png, nullptr);
  return true;
}

std::uint32_t big_endian(const std::uint8_t* p) {
  return std::uint32_t{p[0]} << 24 | std::uint32_t{p[1]} << 16 | std::uint32_t{p[2]} << 8 | p[3];
}

constexpr std::size_t signature_bytes = 8, header_end = 33;

// Calls visit(type, body) for each complete chunk after the header, until it returns false.
template <typename Visit>
void each_chunk(Bytes bytes, Visit visit) {
  std::size_t at = header_end;
  while (at + 12 <= bytes.size()) {
    const std::size_t length = big_endian(raw(bytes) + at);
    const char* type = reinterpret_cast<const char*>(raw(bytes) + at + 4);
    const std::size_t there = bytes.size() - at - 8;
    if (!visit(std::string(type, 4), length, bytes.subspan(at + 8, std::min(length, there))))
      return;
    if (length > there) return;
    at += length + 12;
  }
}

Status check_chunks(Bytes bytes, const DecodeLimits& limits) {
  std::size_t too_long = 0;
  std::string name;
  each_chunk(bytes, [&](const std::string& type, std::size_t length, Bytes) {
    // IDAT is inflated as it is read, so long IDAT chunks need no memory.
    if (type != "IDAT" && length > static_cast<std::size_t>(limits.png_chunk_bytes)) {
      too_long = length;
      name = type;
    }
    return too_long == 0 && type != "IEND";
  });
  if (too_long == 0) return {};
  return image_error(ImageFormat::png,
                     "its chunk " + name + " has " + std::to_string(too_long) +
                         " bytes, more than the limit of " + std::to_string(limits.png_chunk_bytes),
                     "Raise the limit png_chunk_bytes if you trust the file");
}

// An interlaced picture is stored as seven passes over the whole picture.
std::int64_t read_interlaced(Session& session, std::uint8_t* pixels, std::size_t stride,
                             std::int64_t height) {
  std::memset(pixels, 0, stride * static_cast<std::size_t>(height));
  for (int pass = 0; pass < PNG_INTERLACE_ADAM7_PASSES; ++pass) {
    if (read_rows(session, pixels, stride, height) < height) return 0;
  }
  return height;
}

class PngReader {
 public:
  PngReader(Session& session, const Header& header, const ReadRequest& request, RowSink& sink)
      : session_(session), header_(header), request_(request), sink_(sink) {}

  Status read(Damage& damage) {
    const bool interlaced =
        png_get_interlace_type(session_.png, session_.info) == PNG_INTERLACE_ADAM7;
    channels_ = png_get_channels(session_.png, session_.info);
    stride_ = png_get_rowbytes(session_.png, session_.info) + row_padding;
    if (channels_ != header_.channels) {
      return damaged_error(ImageFormat::png, "its transparency chunk is broken");
    }
    Status status = interlaced ? read_raster() : read_bands();
    if (status.ok()) damage = session_.fatal;
    return status;
  }

 private:
  Status failure() const {
    if (request_.deadline.expired()) return late_error(ImageFormat::png, request_.limits);
    if (session_.fatal[0] == '\0' || request_.tolerant) return {};
    return damaged_error(ImageFormat::png, session_.fatal);
  }

  Status read_raster() {
    std::uint8_t* pixels = Scratch::ensure(Scratch::of_this_thread().raster,
                                           stride_ * static_cast<std::size_t>(header_.height));
    if (read_interlaced(session_, pixels, stride_, header_.height) == header_.height) {
      (void)finish(session_);
    }
    if (Status status = failure(); !status.ok()) return status;
    send_raster(pixels, stride_, channels_, request_.region, sink_);
    return {};
  }

  Status read_bands() {
    constexpr std::int64_t band_rows = 16;
    const Region& region = request_.region;
    std::uint8_t* band = Scratch::ensure(Scratch::of_this_thread().band, band_rows * stride_);
    for (std::int64_t y = 0; y < region.y1;) {
      const std::int64_t end = y < region.y0 ? region.y0 : region.y1;
      const std::int64_t count = std::min(band_rows, end - y);
      const std::int64_t done =
          session_.fatal[0] == '\0' ? read_rows(session_, band, stride_, count) : 0;
      if (y + count == header_.height && done == count) (void)finish(session_);
      if (Status status = failure(); !status.ok()) return status;
      std::memset(band + static_cast<std::size_t>(done) * stride_, 0,
                  static_cast<std::size_t>(count - done) * stride_);
      if (y >= region.y0) {
        sink_.rows(band + static_cast<std::size_t>(region.x0 * channels_), stride_, count);
      }
      y += count;
    }
    return {};
  }

  Session& session_;
  const Header& header_;
  const ReadRequest& request_;
  RowSink& sink_;
  int channels_ = 0;
  std::size_t stride_ = 0;
};

}  // namespace

Status read_png_header(Bytes bytes, Header& header) {
  const std::uint8_t* data = raw(bytes);
  if (bytes.size() < header_end || big_endian(data + signature_bytes) != 13 ||
      std::memcmp(data + signature_bytes + 4, "IHDR", 4) != 0) {
    return damaged_error(ImageFormat::png, "it does not begin with a header chunk");
  }
  header.width = big_endian(data + 16);
  header.height = big_endian(data + 20);
  if (std::max(header.width, header.height) > INT32_MAX) {  // so that their product fits
    return damaged_error(ImageFormat::png, "its sides have more than 31 bits");
  }
  header.bits = data[24];
  const int colour = data[25];
  bool transparent = (colour & PNG_COLOR_MASK_ALPHA) != 0;
  bool pixels_seen = false;
  each_chunk(bytes, [&](const std::string& type, std::size_t, Bytes body) {
    pixels_seen = pixels_seen || type == "IDAT";
    if (type == "tRNS" && !pixels_seen) transparent = true;
    if (type == "eXIf") header.orientation = tiff_orientation(body);
    return type != "IEND";
  });
  header.channels = ((colour & PNG_COLOR_MASK_COLOR) != 0 ? 3 : 1) + (transparent ? 1 : 0);
  return {};
}

Status read_png(Bytes bytes, const Header& header, const ReadRequest& request, RowSink& sink,
                Damage& damage) {
  if (Status status = check_chunks(bytes, request.limits); !status.ok()) return status;
  Session session;
  if (!open(session, bytes, header.channels % 2 == 0, request.limits)) {
    return damaged_error(ImageFormat::png,
                         session.fatal[0] != '\0' ? session.fatal : "out of memory");
  }
  return PngReader(session, header, request, sink).read(damage);
}

}  // namespace millrace::detail
