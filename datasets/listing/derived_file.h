// Private: files that are only ever a shortcut. One that is damaged, cut short or of another kind
// is as good as none, and what it holds is found out again. Written beside its name and renamed, so
// that any number of threads and processes may read and write the same one.
#pragma once

#include <millrace/pipeline/base/error.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace millrace {

// `kind` is eight characters, the version included.
std::optional<std::string> read_side_file(const std::filesystem::path& path, std::string_view kind);
// Errors have neither path nor stage.
Status write_side_file(const std::filesystem::path& path, std::string_view kind,
                       std::string_view payload);

}  // namespace millrace
