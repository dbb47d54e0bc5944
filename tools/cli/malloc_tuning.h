// Tunes malloc so that freed tensor memory is reused instead of returned to the kernel.
#pragma once

namespace millrace {

// Call once, before the first step. A training step frees tensors of many megabytes and allocates
// the same amount again. If the memory goes back to the kernel in between, its pages are mapped and
// cleared every time, which takes up to a tenth of a step. Does nothing without glibc.
void tune_malloc();

}  // namespace millrace
