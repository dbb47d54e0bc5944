// Shows a cache: description, one row, statistics, contact sheet.
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
  std::int64_t samples = 24;  // in the contact sheet
  std::int64_t frames = 6;    // per clip in the contact sheet
  std::string sheet{};
};

// Opens a cache of any format as a data set of all columns that can be fields.
AnyDataset open_cache(const std::filesystem::path& path, const CacheInfo& info);
bool is_cache(const std::filesystem::path& path);

// Prints the description. Returns the exit code: 1 if --verify found damage.
int view_cache(const std::filesystem::path& path, const ViewOptions& options);
int view_media(const std::filesystem::path& path, const ViewOptions& options);

}  // namespace millrace
