#include "tools/cli/dynamic_library.h"

#include <millrace/pipeline/base/error.h>

#include <filesystem>

#include <dlfcn.h>

namespace millrace {

void* open_library(const std::string& name) {
  std::error_code ignored;
  const auto folder = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  for (const auto& place : {folder / ".." / "lib" / name, folder / name}) {
    if (!std::filesystem::exists(place, ignored)) continue;
    void* library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw Error(dlerror()).kind(ErrorKind::usage);
    return library;
  }
  return nullptr;
}

void* find_function(void* library, const std::string& name) {
  void* function = dlsym(library, name.c_str());
  if (function == nullptr) {
    throw Error("a library of another version is installed: it has no " + name)
        .kind(ErrorKind::usage);
  }
  return function;
}

}  // namespace millrace
