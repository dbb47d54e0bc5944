// Private: reads and checks caches that are Arrow IPC files. See Note [an Arrow cache in one file].
#pragma once

#include <millrace/datasets/caches/cache_info.h>

#include <cstdint>
#include <filesystem>
#include <functional>

namespace millrace::detail {

CacheInfo read_arrow_info(const std::filesystem::path& path);
void for_each_arrow_failure(const std::filesystem::path& path,
                            const std::function<void(const CacheFailure&)>& use);
void for_each_arrow_source(const std::filesystem::path& path,
                           const std::function<void(std::int64_t row, const CacheSource&)>& use);
CacheCheck check_arrow(const std::filesystem::path& path);

}  // namespace millrace::detail
