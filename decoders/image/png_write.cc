#include <millrace/decoders/image/image_write.h>

#include <bit>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <new>
#include <string>

#include <png.h>

namespace millrace {
namespace {

// See Note [libjpeg error handling] in jpeg.cc.
struct Session {
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::vector<std::byte>* file = nullptr;
  char fatal[256] = {};

  Session() = default;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() { png_destroy_write_struct(&png, &info); }
};

[[noreturn]] void on_error(png_structp png, png_const_charp message) {
  auto& session = *static_cast<Session*>(png_get_error_ptr(png));
  std::snprintf(session.fatal, sizeof session.fatal, "%s", message);
  png_longjmp(png, 1);
}

void on_warning(png_structp, png_const_charp) {}
void on_flush(png_structp) {}

// No exception may cross libpng's frames, so a failed append is reported as an error of libpng.
bool append(std::vector<std::byte>& file, const png_byte* from, std::size_t count) noexcept {
  try {
    const auto* bytes = reinterpret_cast<const std::byte*>(from);
    file.insert(file.end(), bytes, bytes + count);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void on_write(png_structp png, png_bytep from, std::size_t count) {
  auto& session = *static_cast<Session*>(png_get_io_ptr(png));
  if (!append(*session.file, from, count)) png_error(png, "out of memory");
}

struct Picture {
  const png_byte* pixels = nullptr;
  png_uint_32 height = 0, width = 0;
  int channels = 1, bits = 8;
  std::size_t stride() const {
    return std::size_t{width} * static_cast<std::size_t>(channels * bits / 8);
  }
};

bool write(Session& session, const Picture& picture, int compression) {
  constexpr int colour_types[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA,
                                  PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGB_ALPHA};
  session.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &session, on_error, on_warning);
  if (session.png == nullptr) return false;
  png_structp png = session.png;
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  session.info = png_create_info_struct(png);
  png_set_write_fn(png, &session, on_write, on_flush);
  png_set_compression_level(png, compression);
  png_set_IHDR(png, session.info, picture.width, picture.height, picture.bits,
               colour_types[picture.channels - 1], PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png, session.info);
  if (picture.bits == 16 && std::endian::native == std::endian::little) png_set_swap(png);
  for (png_uint_32 y = 0; y < picture.height; ++y) {
    png_write_row(png, picture.pixels + y * picture.stride());
  }
  png_write_end(png, session.info);
  return true;
}

}  // namespace

Status encode_png(const Array& image, const PngOptions& options, std::vector<std::byte>& file) {
  const Shape& shape = image.shape();
  const std::int64_t channels = shape.rank() == 2 ? 1 : shape.rank() == 3 ? shape[2] : 0;
  const bool wide = image.dtype() == DType::uint16;
  constexpr std::int64_t largest = 0x7FFFFFFF;
  if ((image.dtype() != DType::uint8 && !wide) || channels < 1 || channels > 4 || shape[0] < 1 ||
      shape[1] < 1 || shape[0] > largest || shape[1] > largest) {
    return Error("needs uint8 or uint16 [height, width] or [height, width, 1 to 4 channels], not " +
                 to_string(image))
        .stage("PNG")
        .kind(ErrorKind::usage);
  }
  if (options.compression < 0 || options.compression > 9) {
    return Error("compression must be 0 to 9, but is " + std::to_string(options.compression))
        .stage("PNG")
        .kind(ErrorKind::usage);
  }
  file.clear();
  Session session;
  session.file = &file;
  const Picture picture{reinterpret_cast<const png_byte*>(image.data()),
                        static_cast<png_uint_32>(shape[0]), static_cast<png_uint_32>(shape[1]),
                        static_cast<int>(channels), wide ? 16 : 8};
  if (!write(session, picture, options.compression)) {
    return Error(std::string("cannot write (") +
                 (session.fatal[0] != '\0' ? session.fatal : "out of memory") + ")")
        .stage("PNG");
  }
  return {};
}

}  // namespace millrace
