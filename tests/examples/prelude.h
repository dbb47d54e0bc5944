// Names that examples use and do not declare: declared here, never defined, for examples are
// compiled and not linked. What one room alone needs is in <room>_prelude.h.
#pragma once

#include <millrace/pipeline.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace millrace_examples {

// What an example returns, of whatever type.
struct Returned {
  Returned() = default;
  template <class T>
  Returned(T&&) {}
};

// What a reader's own code does with things.
template <class... Things>
void consume(Things&&...);
template <class... Things>
void train(Things&&...);
template <class... Things>
void use(Things&&...);

extern std::vector<std::byte> bytes;
extern std::uint64_t seed;
extern std::int64_t epoch, index, count;
extern const millrace::LoadContext context;
extern const millrace::Batch batch;

// A data set for examples that show one member function.
struct DatasetOfExample : millrace::Dataset {
  std::int64_t size() const override;
  const millrace::Schema& schema() const override;
  std::int64_t count;
  std::vector<std::string> captions_;
};

}  // namespace millrace_examples
