// How checkpoints of a run are numbered (see run_folder.h), without LibTorch.
//
//   CheckpointNumbers numbers = CheckpointNumbers::steps_done;      // checkpoint.9000.pt
#pragma once

#include <cstdint>

namespace millrace {

// What the number in a checkpoint's file name counts.
enum class CheckpointNumbers : std::uint8_t {
  steps_done,  // steps: n, 2n, ... for a checkpoint every n steps
  // Checkpoints, as in Python trainers. A checkpoint at any other step (after a signal, or at the
  // end) gets the next number.
  checkpoints,              // 1 after n steps, 2 after 2n
  checkpoints_after_first,  // 0 after the first step, 1 after n + 1
};

}  // namespace millrace
