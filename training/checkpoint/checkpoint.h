// Reads and writes checkpoints: the .pt files of PyTorch. Python reads ours with
// torch.load(weights_only=True); files that Python saved are read here. Reading never runs code: a
// pickle that names anything but tensors and plain values is refused, and the Error says what it
// named.
//
//   using namespace millrace;
//   write_checkpoint("run/vae.1000.pt", Dict{{"step", 1000}, {"name", "vae"}});
//   Value state = read_checkpoint("run/vae.1000.pt");
//   std::string line = "step " + std::to_string(state["step"].as_int());
//
// Tensors that share memory share it in the file too, and again when it is read; views stay views.
// Neither this header nor its library needs LibTorch. tensors.h converts tensors.
#pragma once

#include <millrace/training/checkpoint/value.h>

#include <filesystem>
#include <string>

namespace millrace {

// Atomic and durable: after a crash or on a full disk the old file is still whole.
void write_checkpoint(const std::filesystem::path& path, const Value& value);

// Throws an Error with the path if the file is damaged, is no checkpoint, or names code.
Value read_checkpoint(const std::filesystem::path& path);

// Reads plain values that pickle.dumps() wrote in Python.
Value read_pickle(const std::string& pickle);

}  // namespace millrace
