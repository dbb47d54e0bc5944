// libjpeg-turbo alone: decodes files in memory to RGB, at full size or at the smallest DCT scale
// whose shorter side is at least 256. usage: floor_images full|scaled THREADS PASSES LIST
#include "floor.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include <jpeglib.h>

namespace {

using namespace millrace;

std::vector<std::vector<unsigned char>> contents_of(const std::vector<std::string>& paths) {
  std::vector<std::vector<unsigned char>> files;
  for (const std::string& path : paths) {
    std::ifstream in(path, std::ios::binary);
    files.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return files;
}

void decode(const std::vector<unsigned char>& file, bool scaled, std::vector<unsigned char>& row) {
  jpeg_decompress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = jpeg_std_error(&errors);  // exits on an error; the corpus has no damaged file
  jpeg_create_decompress(&jpeg);
  jpeg_mem_src(&jpeg, file.data(), file.size());
  jpeg_read_header(&jpeg, TRUE);
  jpeg.out_color_space = JCS_RGB;
  jpeg.scale_denom = 8;
  jpeg.scale_num = 8;
  auto shorter = std::min(jpeg.image_width, jpeg.image_height);
  for (unsigned eighths : {1U, 2U, 4U}) {
    if (scaled && (shorter * eighths + 7) / 8 >= 256) {
      jpeg.scale_num = eighths;
      break;
    }
  }
  jpeg_start_decompress(&jpeg);
  row.resize(std::size_t{jpeg.output_width} * 3 * jpeg.output_height);
  while (jpeg.output_scanline < jpeg.output_height) {
    unsigned char* rows[8];
    for (unsigned i = 0; i < 8; ++i) {
      auto line = std::min(jpeg.output_scanline + i, jpeg.output_height - 1);
      rows[i] = row.data() + std::size_t{line} * jpeg.output_width * 3;
    }
    jpeg_read_scanlines(&jpeg, rows, 8);
  }
  jpeg_finish_decompress(&jpeg);
  jpeg_destroy_decompress(&jpeg);
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 5) {
    std::fputs("usage: floor_images full|scaled THREADS PASSES LIST\n", stderr);
    return 2;
  }
  std::string mode = arguments[1];
  auto files = contents_of(lines_of(arguments[4]));
  measure_floor({.workload = "images",
                 .peer = "libjpeg-turbo " + mode,
                 .note = "decoding alone, files in memory",
                 .version = "libjpeg-turbo",
                 .workers = std::atoi(arguments[2]),
                 .passes = std::atoi(arguments[3])},
                static_cast<std::int64_t>(files.size()), [&] {
                  return [&, pixels = std::vector<unsigned char>()](std::int64_t item) mutable {
                    decode(files[static_cast<std::size_t>(item)], mode == "scaled", pixels);
                  };
                });
}
