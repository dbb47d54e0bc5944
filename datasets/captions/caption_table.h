// Private: a table that gives files their captions.
#pragma once

#include <millrace/pipeline/base/error.h>

#include <filesystem>
#include <string>
#include <vector>

namespace millrace {

struct CaptionRow {
  std::string path;
  std::string caption;
  std::int64_t line = 0;
};

// CSV (RFC 4180: quotes, line breaks inside them) with a line of column names, JSON lines, or an
// Arrow file (.arrow, .feather) whose rows count as lines. By the table's extension; throws an
// Error with the line where it cannot be read.
std::vector<CaptionRow> read_caption_table(const std::filesystem::path& table,
                                           const std::string& path_column,
                                           const std::string& caption_column);

}  // namespace millrace
