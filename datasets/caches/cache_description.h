// Private: the description of a cache as text, and the file that holds it beside an array file.
#pragma once

#include <millrace/datasets/caches/cache_info.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

namespace millrace::detail {

// The public CacheInfo, and the checksums of the files.
struct CacheDescription {
  CacheInfo info;
  // Array files only: the header before the rows, and the list of sources beside the file.
  std::uint64_t header_bytes = 0, sources_bytes = 0;
  std::string header_xxh3, sources_xxh3;
};

// Canonical JSON: the same description gives the same text.
std::string to_text(const CacheDescription& description);
// Throws an Error that names `path` if the text is not a description.
CacheDescription from_text(std::string_view text, const std::filesystem::path& path);

// The content of a description file: {"millrace": <the text>, "xxh3": "<of everything before>"}.
std::string seal_description(const CacheDescription& description);
CacheDescription open_description(std::string_view content, const std::filesystem::path& path);

std::filesystem::path description_path(const std::filesystem::path& cache);
std::filesystem::path sources_file_of(const std::filesystem::path& cache);

// The properties, by name, that must be equal for a run to be resumed.
std::map<std::string, std::string> plan_of(const CacheInfo& info);
// "size: 256 before, 128 now; ...", or empty if they are equal.
std::string differences(const std::map<std::string, std::string>& before,
                        const std::map<std::string, std::string>& now);

// One line of the list of sources.
std::string to_line(std::int64_t index, const CacheSource& source, const std::string* reason);
struct SourceLine {
  std::int64_t index = 0;
  CacheSource source;
  bool failed = false;
  std::string reason;
};
SourceLine from_line(std::string_view line, const std::filesystem::path& path);

}  // namespace millrace::detail
