// Opens Millrace's own shared libraries at run time. Programs start without what these link:
// loading LibTorch alone takes a third of a second.
//
//   void* library = open_library("libmillrace_trainers.so");
//   auto* entry = reinterpret_cast<int (*)()>(find_function(library, "millrace_train"));
#pragma once

#include <string>

namespace millrace {

// Looks in ../lib and in the folder of the program, where build and installation put libraries.
// Returns null if there is no such file; throws an Error of kind usage if it cannot be opened.
void* open_library(const std::string& name);

// Returns the address of the function `name`; throws an Error if the library has none.
void* find_function(void* library, const std::string& name);

}  // namespace millrace
