// How checkpoints of a run are numbered (see run_folder.h), without LibTorch.
//
//   CheckpointNumbers numbers = CheckpointNumbers::steps_done;      // checkpoint.9000.pt
#pragma once

#include <cstdint>

namespace millrace {

// What the number in a checkpoint's name counts.
enum class CheckpointNumbers : std::uint8_t {
  steps_done,  // after every n-th step: n, 2n, ...
  // As trainers in Python do: 1 after n steps, 2 after 2n; or 0 after the first step, 1 after n
  // + 1. What comes between, at a signal or at the end, has the number of the next.
  checkpoints,
  checkpoints_after_first,
};

}  // namespace millrace
