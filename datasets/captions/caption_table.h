// Private: reads a table of file names and captions.
#pragma once

#include <millrace/pipeline/base/error.h>

#include <filesystem>
#include <string>
#include <vector>

namespace millrace::detail {

struct CaptionRow {
  std::string path;
  std::string caption;
  std::int64_t line = 0;
};

// The extension decides the format: JSON lines (.jsonl, .ndjson, .json), Arrow (.arrow, .feather;
// rows count as lines), otherwise CSV with a header line (RFC 4180, with quotes and line breaks
// inside them). Throws an Error with the line if the table cannot be read.
std::vector<CaptionRow> read_caption_table(const std::filesystem::path& table,
                                           const std::string& path_column,
                                           const std::string& caption_column);

}  // namespace millrace::detail
