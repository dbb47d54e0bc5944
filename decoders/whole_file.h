// Private: a file that appears under its name only when it is complete and on the disk.
#pragma once

#include <millrace/pipeline/base/error.h>

#include <cstdint>
#include <filesystem>
#include <span>

namespace millrace {

Status write_whole_file(const std::filesystem::path& path, std::span<const std::uint8_t> bytes,
                        const char* stage);

}  // namespace millrace
