// How `generate` runs: one Generator for each kind of model. A model that makes something else than
// meshes is another file with another Generator.
#pragma once

#include "tools/generate/generate_options.h"

#include <millrace/pipeline/data/array.h>
#include <millrace/training/checkpoint/value.h>

#include <filesystem>
#include <string>
#include <vector>

namespace millrace {

// What was made: files as they are written, and a row of the sheet for each.
struct Made {
  std::vector<std::string> lines{};  // one for each thing, for people
  std::int64_t files = 0;
  Array sheet{};  // uint8 [height, width, 3]
};

struct Generator {
  const char* what;
  // Is this the state of such a model?
  bool (*fits)(const Dict& weights);
  Made (*run)(const GenerateOptions& options, const Value& saved, const Dict& weights);
};

extern const Generator mesh_transformer_generator, mesh_autoencoder_generator;

}  // namespace millrace
