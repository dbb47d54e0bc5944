// Private: the plan of a cache, checked and completed with its defaults.
#pragma once

#include <millrace/datasets/caches/cache_writer.h>

#include <filesystem>
#include <string>

namespace millrace::detail {

// Throws an Error of kind usage and stage "cache" unless `condition` holds.
void require_cache(bool condition, const std::string& problem, const std::string& hint = "");

// What the finished cache will say about itself, apart from its rows. Throws if the schema does not
// fit the format.
CacheInfo describe_plan(const std::filesystem::path& out, const CachePlan& plan,
                        const CacheOptions& options);

}  // namespace millrace::detail
