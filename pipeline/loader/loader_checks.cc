#include "loader_checks.h"

#include <algorithm>

namespace millrace::detail {

namespace {

// Without lengths, buckets would only make the shuffle worse.
void check_lengths(const Dataset& dataset, const LoaderOptions& options) {
  if (options.bucket.window == 0) return;
  for (std::int64_t i = 0; i < dataset.size(); ++i) {
    if (dataset.length(i) > 0) return;
  }
  throw Error("bucket: the dataset does not know the length of any sample")
      .stage("loader")
      .kind(ErrorKind::usage)
      .hint("Leave bucket.window at 0, or override Dataset::length()");
}

}  // namespace

void require(bool condition, const std::string& problem) {
  if (!condition) throw Error(problem).stage("loader").kind(ErrorKind::usage);
}

bool is_inside(const Position& position, std::int64_t size, std::int64_t group) {
  return position.epoch >= 0 && position.next >= 0 && position.next <= size && position.part >= 0 &&
         position.part < std::max<std::int64_t>(group, 1) && has_sound_buckets(position);
}

void check_options(const Dataset& dataset, const LoaderOptions& options) {
  require(options.prefetch >= 1 && options.prefetch <= 4096,
          "prefetch must be 1 to 4096 batches, but is " + std::to_string(options.prefetch));
  require(dataset.schema().size() > 0, "the dataset's schema has no fields");
  require(options.max_bytes >= 0, "max_bytes must not be negative");
  check_lengths(dataset, options);
  require(options.errors.max_attempts >= 1, "errors.max_attempts must be at least 1, but is " +
                                                std::to_string(options.errors.max_attempts));
  require(options.errors.max_fraction >= 0 && options.errors.max_fraction <= 1,
          "errors.max_fraction must lie between 0 and 1, but is " +
              std::to_string(options.errors.max_fraction));
  if (options.position) {
    require(is_inside(*options.position, dataset.size(), options.group),
            "position {epoch " + std::to_string(options.position->epoch) + ", next " +
                std::to_string(options.position->next) + "} is not in a dataset of " +
                std::to_string(dataset.size()) + " samples");
  }
}

}  // namespace millrace::detail
