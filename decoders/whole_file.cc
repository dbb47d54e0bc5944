#include "whole_file.h"

#include <millrace/pipeline/base/durable_file.h>

namespace millrace {

Status write_whole_file(const std::filesystem::path& path, std::span<const std::uint8_t> bytes,
                        const char* stage) {
  try {
    DurableFile file(path);
    file.write(std::as_bytes(bytes));
    file.commit();
    return {};
  } catch (const Error& error) {
    return Error(error.reason()).at(path.string()).stage(stage).hint(error.hint());
  }
}

}  // namespace millrace
