// Runs `generate`: one Generator per kind of model. A model that generates something else than
// meshes gets a file of its own with another Generator.
#pragma once

#include "tools/generate/generate_options.h"

#include <millrace/pipeline/data/array.h>
#include <millrace/training/checkpoint/value.h>

#include <filesystem>
#include <string>
#include <vector>

namespace millrace {

// What was generated: files on disk, and a row of the sheet for each.
struct Made {
  std::vector<std::string> lines{};  // one line per result, for the terminal
  std::int64_t files = 0;
  Array sheet{};  // uint8 [height, width, 3]
};

struct Generator {
  const char* what;
  // Whether `weights` is the state_dict of this kind of model.
  bool (*fits)(const Dict& weights);
  Made (*run)(const GenerateOptions& options, const Value& saved, const Dict& weights);
};

extern const Generator mesh_transformer_generator, mesh_autoencoder_generator;

}  // namespace millrace
