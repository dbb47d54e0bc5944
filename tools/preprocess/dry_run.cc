// --dry-run: prints which caches would be written from which files, without decoding or writing.
#include "tools/cli/progress.h"
#include "tools/preprocess/shards/cache_rows.h"
#include "tools/preprocess/shards/targets.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace millrace {

int dry_run(const Job& job, const RunOptions& options) {
  CacheRows rows(job, chosen_format(options));
  Targets targets(job, options, rows.schema(), true);
  std::int64_t row = row_bytes(rows.schema());
  nlohmann::json told{{"what", job.what}, {"dry_run", true}, {"options", job.options}};
  for (const Targets::Target& target : targets.all()) {
    std::int64_t bytes = 0;
    for (std::int64_t i = 0; i < target.sources; ++i) {
      bytes += std::max<std::int64_t>(job.source(target.index(i)).bytes, 0);
    }
    std::string size =
        row < 0 ? "rows of varying size" : in_bytes(static_cast<double>(row * target.sources));
    told["caches"].push_back({{"path", target.path.string()},
                              {"schema", to_string(rows.schema())},
                              {"sources", target.sources},
                              {"source_bytes", bytes},
                              {"bytes", row < 0 ? -1 : row * target.sources}});
    if (options.json) continue;
    fmt::print("{}: {} of {} {} ({}), {}\n", target.path.string(), to_string(rows.schema()),
               target.sources, job.what, in_bytes(static_cast<double>(bytes)), size);
  }
  if (options.json) {
    fmt::print("{}\n", told.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    return 0;
  }
  for (const auto& [name, value] : job.options) fmt::print("  {} = {}\n", name, value);
  fmt::print("dry run: nothing was read or written\n");
  return 0;
}

}  // namespace millrace
