// What a program that trains does with memory that it has freed.
#pragma once

namespace millrace {

// Keeps freed memory for the next allocation. A step frees tensors of many megabytes and asks for
// as many again; given back to the kernel in between they must be cleared and mapped anew every
// time, which takes up to a tenth of a step.
void keep_freed_memory();

}  // namespace millrace
