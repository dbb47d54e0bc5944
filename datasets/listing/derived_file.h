// Private: files whose content can be computed again, such as an index. A damaged or truncated
// file, or one of another kind, counts as missing. The content is written to a temporary name and
// renamed, so any number of threads and processes may read and write the same file.
#pragma once

#include <millrace/pipeline/base/error.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace millrace::detail {

// The content; nothing if the file is missing or damaged. `kind` is eight characters with a
// version.
std::optional<std::string> read_derived_file(const std::filesystem::path& path,
                                             std::string_view kind);
// Errors have no path and no stage.
Status write_derived_file(const std::filesystem::path& path, std::string_view kind,
                          std::string_view payload);

}  // namespace millrace::detail
