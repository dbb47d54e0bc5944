// Writes JPEG files of kinds that Pillow cannot write: any sampling, YCCK, restart markers.
#pragma once

#include <millrace/pipeline/data/array.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <jpeglib.h>

namespace millrace {

struct JpegKind {
  int horizontal = 2, vertical = 2;  // sampling of luma against chroma
  bool progressive = false;
  bool inks = false;  // YCCK
  unsigned restart = 0;
  int scans = 0;  // progressive with so many, at most 191
};

// All DC coefficients in one scan, then one AC coefficient of one component in each.
inline std::vector<jpeg_scan_info> scan_script(int scans) {
  std::vector<jpeg_scan_info> script(static_cast<std::size_t>(scans));
  script[0] = {3, {0, 1, 2}, 0, 0, 0, 0};
  for (int i = 1; i < scans; ++i) {
    const int coefficient = 1 + (i - 1) % 63;
    script[static_cast<std::size_t>(i)] = {1, {(i - 1) / 63}, coefficient, coefficient, 0, 0};
  }
  return script;
}

inline std::vector<std::byte> encode_jpeg(int width, int height, const JpegKind& kind) {
  jpeg_compress_struct cinfo{};
  jpeg_error_mgr errors{};
  cinfo.err = jpeg_std_error(&errors);
  jpeg_create_compress(&cinfo);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&cinfo, &memory, &size);
  const int channels = kind.inks ? 4 : 3;
  cinfo.image_width = static_cast<JDIMENSION>(width);
  cinfo.image_height = static_cast<JDIMENSION>(height);
  cinfo.input_components = channels;
  cinfo.in_color_space = kind.inks ? JCS_CMYK : JCS_RGB;
  jpeg_set_defaults(&cinfo);
  jpeg_set_colorspace(&cinfo, kind.inks ? JCS_YCCK : JCS_YCbCr);
  cinfo.comp_info[0].h_samp_factor = kind.horizontal;
  cinfo.comp_info[0].v_samp_factor = kind.vertical;
  if (kind.inks) cinfo.comp_info[3].h_samp_factor = cinfo.comp_info[3].v_samp_factor = 1;
  cinfo.restart_interval = kind.restart;
  if (kind.progressive) jpeg_simple_progression(&cinfo);
  const std::vector<jpeg_scan_info> script = scan_script(std::max(kind.scans, 1));
  if (kind.scans > 0) {
    cinfo.scan_info = script.data();
    cinfo.num_scans = kind.scans;
  }
  jpeg_start_compress(&cinfo, TRUE);
  std::vector<JSAMPLE> row(static_cast<std::size_t>(width * channels));
  unsigned noise = 7;
  for (int y = 0; y < height; ++y) {
    for (int i = 0; i < width * channels; ++i) {
      const int x = i / channels, c = i % channels;
      noise = noise * 1664525 + 1013904223;
      const double wave = 120 + 70 * std::sin(x / (4.0 + c) + c) + 50 * ((x / 9 + y / 7) % 2);
      row[static_cast<std::size_t>(i)] = static_cast<JSAMPLE>(wave + (noise >> 28));
    }
    JSAMPROW rows[1] = {row.data()};
    jpeg_write_scanlines(&cinfo, rows, 1);
  }
  jpeg_finish_compress(&cinfo);
  const auto* first = reinterpret_cast<const std::byte*>(memory);
  std::vector<std::byte> file(first, first + size);
  jpeg_destroy_compress(&cinfo);
  std::free(memory);
  return file;
}

}  // namespace millrace
