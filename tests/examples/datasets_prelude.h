// What examples of datasets/, and those of READMEs, use and do not declare.
#pragma once

#include "tests/examples/prelude.h"

#include <millrace/datasets.h>

namespace millrace_examples {

// Pictures as a data set, and as the array that a batch has of them.
struct Images : millrace::ImageFolder {
  operator const millrace::Array&() const;
};
extern const Images images;
extern millrace::VideoFolder clips;
extern millrace::MeshFolder meshes;
extern millrace::AudioFolder songs;
extern millrace::Mesh mesh;
extern std::vector<std::array<std::int64_t, 2>> pairs;
std::string path(std::int64_t index);
millrace::Sample sample(std::int64_t index);

}  // namespace millrace_examples
