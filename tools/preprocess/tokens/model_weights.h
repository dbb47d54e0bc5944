// Reads the weights and the configuration of a model from a checkpoint or a file of weights.
#pragma once

#include "tools/preprocess/tokens/token_model.h"

#include <millrace/training/checkpoint/value.h>

#include <filesystem>
#include <string>
#include <vector>

#include <torch/nn/module.h>

namespace millrace {

// Reads a checkpoint given on the command line; an unreadable file is an Error of kind usage.
Value read_model(const std::filesystem::path& path);

// The state_dict by `options.weights`: "ema", "model", or empty: the moving average if there is
// one.
Dict model_weights(const Value& saved, const TokenModelOptions& options);

// Throws an Error of kind usage if the model was never trained, since its tokens would mean
// nothing: a checkpoint of step 0, or a codebook that was never initialised.
void check_trained(const Value& saved, const Dict& weights, const std::filesystem::path& path);

// The constructor arguments as JSON: from `options.config`, from the checkpoint, or from the
// config.toml beside it. `defaults`: all arguments with their defaults, to find them in a TOML
// file.
std::string model_configuration(const Value& saved, const TokenModelOptions& options,
                                const std::string& defaults);

// Copies only the weights whose names begin with one of `parts`: those that tokens depend on.
// Returns the hash of these weights and of the configuration.
std::string load_parts(const Dict& weights, const torch::nn::Module& model,
                       const std::vector<std::string>& parts, const std::string& configuration,
                       const std::filesystem::path& path);

}  // namespace millrace
