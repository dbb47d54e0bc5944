// Libraries of ours that a program opens when it needs them, so that it starts without what they
// link: LibTorch alone takes a third of a second.
#pragma once

#include <string>

namespace millrace {

// Opens a library that stands where the build and the installation put it: in ../lib or beside the
// program. Null if it is not there; an Error of kind usage if it cannot be opened.
void* open_beside_program(const std::string& name);

// A function of it; an Error if it has none of that name.
void* function_of(void* library, const std::string& name);

}  // namespace millrace
