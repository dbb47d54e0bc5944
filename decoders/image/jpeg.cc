#include "image_reader.h"
#include "pixel_convert.h"

#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstring>

// In this order: jpeglib.h needs stdio.h, and jerror.h needs the switches that jpeglib.h sets.
// clang-format off
#include <jpeglib.h>
#include <jerror.h>
// clang-format on

namespace millrace::detail {
namespace {

// Note [libjpeg error handling]
// libjpeg reports a fatal error through error_exit, which must not return. A C++ exception must
// not cross its C frames, so error_exit jumps back to the guarded call that entered the library.
// A jump runs no destructors: each guarded function below therefore has trivial locals only, calls
// nothing but libjpeg, and the session that owns the library's memory lives outside of all of
// them. Warnings are kept, not printed. libpng works the same way, see png.cc.
struct Session {
  jpeg_decompress_struct cinfo{};
  jpeg_error_mgr errors{};
  std::jmp_buf jump{};
  char fatal[JMSG_LENGTH_MAX] = {};
  char damage[JMSG_LENGTH_MAX] = {};
  jpeg_progress_mgr progress{};
  const Deadline* deadline = nullptr;

  Session() = default;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() { jpeg_destroy_decompress(&cinfo); }
};

Session& session_of(j_common_ptr cinfo) {
  return *static_cast<Session*>(cinfo->client_data);
}

[[noreturn]] void on_error(j_common_ptr cinfo) {
  Session& session = session_of(cinfo);
  cinfo->err->format_message(cinfo, session.fatal);
  std::longjmp(session.jump, 1);
}

// The warnings after which pixels are wrong.
void on_message(j_common_ptr cinfo, int level) {
  if (level >= 0) return;
  switch (cinfo->err->msg_code) {
    case JWRN_JPEG_EOF:
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_ARITH_BAD_CODE:
    case JWRN_MUST_RESYNC:
    case JWRN_BOGUS_PROGRESSION:
      break;
    default:
      return;
  }
  Session& session = session_of(cinfo);
  if (session.damage[0] == '\0') cinfo->err->format_message(cinfo, session.damage);
}

void on_output(j_common_ptr) {}

// Called once for each row of blocks, of each scan.
void on_progress(j_common_ptr cinfo) {
  Session& session = session_of(cinfo);
  if (!session.deadline->expired()) return;
  std::snprintf(session.fatal, sizeof session.fatal, "too late");
  std::longjmp(session.jump, 1);
}

bool open(Session& session, const unsigned char* data, std::size_t size) {
  session.cinfo.err = jpeg_std_error(&session.errors);
  session.errors.error_exit = on_error;
  session.errors.emit_message = on_message;
  session.errors.output_message = on_output;
  session.cinfo.client_data = &session;
  if (setjmp(session.jump) != 0) return false;
  jpeg_create_decompress(&session.cinfo);
  jpeg_mem_src(&session.cinfo, data, size);
  return jpeg_read_header(&session.cinfo, TRUE) == JPEG_HEADER_OK;
}

// Starts the output at the first row of the region. `x` is the first column of the output: the
// library crops at whole blocks only.
bool start(Session& session, const Region& region, int eighths, JDIMENSION* x) {
  // Chroma is interpolated from both neighbours, so a pixel beside the cut would differ. This
  // margin keeps the cut away from the region.
  constexpr std::int64_t margin = 8;
  if (setjmp(session.jump) != 0) return false;
  jpeg_decompress_struct& cinfo = session.cinfo;
  cinfo.scale_num = static_cast<unsigned>(eighths);
  cinfo.scale_denom = 8;
  cinfo.out_color_space = cinfo.num_components == 1   ? JCS_GRAYSCALE
                          : cinfo.num_components == 4 ? JCS_CMYK
                                                      : JCS_RGB;
  jpeg_start_decompress(&cinfo);
  const std::int64_t width = cinfo.output_width;
  // For rare chroma samplings, which interpolate in other ways, all columns are read.
  const bool whole = cinfo.max_h_samp_factor > 2;
  const std::int64_t first = std::max<std::int64_t>(region.x0 - margin, 0);
  const std::int64_t last = std::min(region.x1 + margin, width);
  *x = whole ? 0 : static_cast<JDIMENSION>(first);
  if (last - first < width && !whole) {
    auto count = static_cast<JDIMENSION>(last - first);
    jpeg_crop_scanline(&cinfo, x, &count);
  }
  if (region.y0 > 0) jpeg_skip_scanlines(&cinfo, static_cast<JDIMENSION>(region.y0));
  return true;
}

// Returns the number of rows read; fewer than `count` only after a fatal error.
int read_band(Session& session, JSAMPROW* rows, int count) {
  volatile int done = 0;
  if (setjmp(session.jump) != 0) return done;
  while (done < count) {
    done = done + static_cast<int>(jpeg_read_scanlines(&session.cinfo, rows + done,
                                                       static_cast<JDIMENSION>(count - done)));
  }
  return done;
}

// CMYK as Adobe stores it, i.e. inverted, to RGB in place, with the arithmetic of Pillow.
void cmyk_to_rgb(std::uint8_t* row, std::int64_t pixels) {
  const std::uint8_t* in = row;
  for (std::int64_t i = 0; i < pixels; ++i, in += 4, row += 3) {
    const int light = in[3];
    const std::uint8_t ink[3] = {in[0], in[1], in[2]};
    for (int c = 0; c < 3; ++c) {
      row[c] = static_cast<std::uint8_t>(light - multiply_255(255 - ink[c], light));
    }
  }
}

struct Marker {
  int code = 0;
  Bytes body;  // without the length
};

// The next marker at or after `at`; skips entropy-coded data.
bool next_marker(Bytes bytes, std::size_t& at, Marker& marker) {
  const std::uint8_t* data = raw(bytes);
  while (at + 1 < bytes.size()) {
    const void* found = std::memchr(data + at, 0xFF, bytes.size() - at - 1);
    if (found == nullptr) return false;
    at = static_cast<std::size_t>(static_cast<const std::uint8_t*>(found) - data) + 1;
    const int code = data[at];
    if (code == 0xFF) continue;
    ++at;
    const bool stands_alone = code == 0x00 || code == 0x01 || (code >= 0xD0 && code <= 0xD8);
    if (stands_alone) continue;
    marker = {code, {}};
    if (code == 0xD9) return true;
    if (at + 2 > bytes.size()) return false;
    const std::size_t length = static_cast<std::size_t>(data[at] << 8 | data[at + 1]);
    if (length < 2 || length > bytes.size() - at) return false;
    marker.body = bytes.subspan(at + 2, length - 2);
    at += length;
    return true;
  }
  return false;
}

constexpr int start_of_scan = 0xDA, end_of_image = 0xD9, application_1 = 0xE1;

bool is_frame_header(int code) {
  return code >= 0xC0 && code <= 0xCF && code != 0xC4 && code != 0xC8 && code != 0xCC;
}

// Stops counting at `limit` + 1.
int count_scans(Bytes bytes, int limit) {
  std::size_t at = 2;
  int scans = 0;
  for (Marker marker; scans <= limit && next_marker(bytes, at, marker);) {
    if (marker.code == end_of_image) break;
    if (marker.code == start_of_scan) ++scans;
  }
  return scans;
}

Status check_session(Session& session, Bytes bytes, const Header& header,
                     const DecodeLimits& limits) {
  const jpeg_decompress_struct& cinfo = session.cinfo;
  if (cinfo.image_width != header.width || cinfo.image_height != header.height) {
    return damaged_error(ImageFormat::jpeg, "two headers contradict each other");
  }
  if (cinfo.num_components != 1 && cinfo.num_components != 3 && cinfo.num_components != 4) {
    return image_error(ImageFormat::jpeg,
                       "it has " + std::to_string(cinfo.num_components) + " components",
                       "Only 1, 3 and 4 have a meaning; convert the file");
  }
  if (jpeg_has_multiple_scans(&session.cinfo) != FALSE &&
      count_scans(bytes, limits.jpeg_scans) > limits.jpeg_scans) {
    return image_error(ImageFormat::jpeg,
                       "it has more than " + std::to_string(limits.jpeg_scans) + " scans",
                       "Raise the limit jpeg_scans if you trust the file");
  }
  return {};
}

}  // namespace

Status read_jpeg_header(Bytes bytes, Header& header) {
  std::size_t at = 2;
  for (Marker marker; next_marker(bytes, at, marker);) {
    const std::uint8_t* body = raw(marker.body);
    if (marker.code == start_of_scan || marker.code == end_of_image) break;
    if (marker.code == application_1 && marker.body.size() > 6 &&
        std::memcmp(body, "Exif\0", 6) == 0) {
      header.orientation = tiff_orientation(marker.body.subspan(6));
    }
    if (is_frame_header(marker.code) && marker.body.size() >= 6 && header.width == 0) {
      header.bits = body[0];
      header.height = body[1] << 8 | body[2];
      header.width = body[3] << 8 | body[4];
      header.channels = body[5] == 1 ? 1 : 3;
    }
  }
  if (header.width == 0 || header.height == 0) {
    return damaged_error(ImageFormat::jpeg, "it has no frame header with a size");
  }
  return {};
}

Status read_jpeg(Bytes bytes, const Header& header, const ReadRequest& request, RowSink& sink,
                 Damage& damage) {
  Session session;
  if (!open(session, raw(bytes), bytes.size())) {
    return damaged_error(ImageFormat::jpeg, session.fatal);
  }
  if (Status status = check_session(session, bytes, header, request.limits); !status.ok()) {
    return status;
  }
  session.deadline = &request.deadline;
  session.progress.progress_monitor = on_progress;
  session.cinfo.progress = &session.progress;
  const Region& region = request.region;
  JDIMENSION first_column = 0;
  if (!start(session, region, request.jpeg_eighths, &first_column)) {
    return damaged_error(ImageFormat::jpeg, session.fatal);
  }
  constexpr int band_rows = 16;
  const auto components = static_cast<std::size_t>(session.cinfo.output_components);
  const std::size_t stride = (session.cinfo.output_width * components + row_padding + 63) / 64 * 64;
  std::uint8_t* band = Scratch::ensure(Scratch::of_this_thread().band, band_rows * stride);
  JSAMPROW rows[band_rows];
  for (std::size_t i = 0; i < band_rows; ++i) rows[i] = band + i * stride;
  const std::size_t channels = components == 1 ? 1 : 3;
  const std::size_t skipped = (static_cast<std::size_t>(region.x0) - first_column) * channels;
  for (std::int64_t y = region.y0; y < region.y1;) {
    const int count = static_cast<int>(std::min<std::int64_t>(band_rows, region.y1 - y));
    const int done = session.fatal[0] == '\0' ? read_band(session, rows, count) : 0;
    for (int i = 0; i < done && components == 4; ++i) {
      cmyk_to_rgb(rows[i], session.cinfo.output_width);
    }
    const char* said = session.fatal[0] != '\0' ? session.fatal : session.damage;
    if (said[0] != '\0' && !request.tolerant) return damaged_error(ImageFormat::jpeg, said);
    damage = said;
    if (done < count) {
      std::memset(rows[done], 0, static_cast<std::size_t>(count - done) * stride);
    }
    sink.rows(band + skipped, stride, count);
    y += count;
  }
  return {};
}

}  // namespace millrace::detail
