// What is in a cache: its description, a row, statistics, a contact sheet.
#pragma once

#include <millrace/datasets/caches/cache_info.h>
#include <millrace/pipeline/data/dataset.h>

#include <cstdint>
#include <filesystem>
#include <string>

namespace millrace {

struct ViewOptions {
  bool verify = false;
  bool json = false;
  std::int64_t row = -1;
  std::int64_t samples = 24;  // of the sheet
  std::int64_t frames = 6;    // of a clip on the sheet
  std::string sheet{};
};

// Whatever format it has, as a data set of all columns that can be fields.
AnyDataset open_cache(const std::filesystem::path& path, const CacheInfo& info);
bool is_cache(const std::filesystem::path& path);

// Prints it. The exit code: 1 if --verify found damage.
int view_cache(const std::filesystem::path& path, const ViewOptions& options);
int view_media(const std::filesystem::path& path, const ViewOptions& options);

}  // namespace millrace
