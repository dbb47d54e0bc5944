// What examples of pipeline/ use and do not declare.
#pragma once

#include "tests/examples/prelude.h"

namespace millrace_examples {

struct SomeDataset : millrace::Dataset {
  std::int64_t size() const override;
  const millrace::Schema& schema() const override;
  millrace::Status load(std::int64_t, const millrace::LoadContext&,
                        millrace::Sample&) const override;
};
extern const SomeDataset dataset, images, clips, photos, drawings, meshes, a, b;
extern millrace::Loader loader;
extern std::vector<std::string> files;
template <class... Things>
bool step(Things&&...);
void check(const std::string& file);
extern void* stream;
void launch_my_kernels(void* stream, const void* data);

}  // namespace millrace_examples
