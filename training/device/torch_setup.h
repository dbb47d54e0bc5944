// Prepares the process for LibTorch, as `import torch` prepares a Python process: asks the kernel
// for the AMX tile registers, reads TORCH_CPP_LOG_LEVEL, and sets the number of threads. It runs by
// itself before main() in every program that links Millrace::training, so nobody has to call it;
// calling it again does nothing.
//
//   set_up_torch();
//   bool tiles = amx_tiles() == AmxTiles::granted;
#pragma once

#include <string>

namespace millrace {

void set_up_torch();

enum class AmxTiles {
  absent,   // the processor has none
  granted,  // oneDNN may use them
  refused,  // the kernel said no: oneDNN is limited to the instruction set below
};

// What set_up_torch() found.
AmxTiles amx_tiles();

namespace detail {

// ONEDNN_MAX_CPU_ISA for a processor whose AMX tiles may not be used; empty if it needs no limit,
// because there are no tiles, they may be used, or the user has set a limit already.
std::string onednn_limit(AmxTiles tiles, const char* limit_of_user);

}  // namespace detail

}  // namespace millrace
