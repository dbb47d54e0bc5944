// What a checkpoint or a file of weights holds of a model: which weights, and its configuration.
#pragma once

#include "tools/preprocess/tokens/token_model.h"

#include <millrace/training/checkpoint/value.h>

#include <filesystem>
#include <string>
#include <vector>

#include <torch/nn/module.h>

namespace millrace {

// A checkpoint that a command line names: if it cannot be read, that is wrong use.
Value read_model(const std::filesystem::path& path);

// The state_dict that is asked for: "ema", "model", or empty for the moving average if there is
// one.
Dict model_weights(const Value& saved, const TokenModelOptions& options);

// The constructor arguments as JSON: from the file that was given, from the checkpoint, or from the
// config.toml beside it. `defaults`: all arguments there are, for what a TOML file calls them.
std::string model_configuration(const Value& saved, const TokenModelOptions& options,
                                const std::string& defaults);

// Copies those of the weights whose names begin with one of `parts`, and nothing else: what tokens
// depend on. Gives the hash of them and of the configuration.
std::string load_parts(const Dict& weights, const torch::nn::Module& model,
                       const std::vector<std::string>& parts, const std::string& configuration,
                       const std::filesystem::path& path);

}  // namespace millrace
