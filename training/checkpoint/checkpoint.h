// Checkpoints: the .pt files of PyTorch. Python reads ours with torch.load(weights_only=True), and
// what Python saved is read here. Nothing in a file is ever run: a pickle that asks for anything
// but tensors and plain values is refused, and the Error names what it asked for.
//
//   write_checkpoint("run/vae.1000.pt", Dict{{"step", 1000}, {"model", to_value(tensors)}});
//   Value state = read_checkpoint("run/vae.1000.pt");
//   copy_tensors(state["model"], named_parameters, "run/vae.1000.pt");
//
// Tensors that share memory share it in the file too, and again when it is read; views stay views.
#pragma once

#include <millrace/training/checkpoint/value.h>

#include <filesystem>

namespace millrace {

// Atomic and durable: after a crash or on a full disk the old file is there, whole.
void write_checkpoint(const std::filesystem::path& path, const Value& value);

// Throws an Error with the path if the file is damaged, is no checkpoint, or asks for code.
Value read_checkpoint(const std::filesystem::path& path);

// What pickle.dumps() made of plain values.
Value read_pickle(const std::string& pickle);

// Copies each tensor of a state_dict into the one of the same name. Throws before anything is
// changed, naming the first tensor that is missing, left over or of another shape.
void copy_tensors(const Value& from, const NamedTensors& to, const std::string& source);

}  // namespace millrace
