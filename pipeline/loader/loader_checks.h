// Private to the loader: checks of its options that need no running loader. They throw an Error
// that names the option and its value.
#pragma once

#include <millrace/pipeline/data/dataset.h>
#include <millrace/pipeline/loader/loader_options.h>

#include <string>

namespace millrace::detail {

// Throws an Error of kind usage with `problem` unless `condition` holds.
void require(bool condition, const std::string& problem);
void check_options(const Dataset& dataset, const LoaderOptions& options);

// True if `position` can be a position in an epoch of `size` samples.
bool is_inside(const Position& position, std::int64_t size, std::int64_t group);

}  // namespace millrace::detail
