#include "archive.h"
#include "unpickler.h"

#include <millrace/pipeline/base/durable_file.h>
#include <millrace/pipeline/base/error.h>
#include <millrace/training/checkpoint/checkpoint.h>

namespace millrace {

void write_checkpoint(const std::filesystem::path& path, const Value& value) {
  DurableFile file(path);
  detail::write_archive(value, [&](std::span<const std::byte> bytes) { file.write(bytes); });
  file.commit();
}

Value read_checkpoint(const std::filesystem::path& path) {
  const detail::ZipReader archive(path);
  try {
    return detail::read_archive(archive);
  } catch (Error& error) {
    throw error.at(path.string()).stage("checkpoint");
  }
}

Value read_pickle(const std::string& pickle) {
  return detail::Unpickler(pickle).read();
}

}  // namespace millrace
