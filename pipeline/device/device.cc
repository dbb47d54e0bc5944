#include <millrace/pipeline/base/error.h>
#include <millrace/pipeline/base/log.h>
#include <millrace/pipeline/device/device.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

#include <dlfcn.h>

namespace millrace {

// Note [CUDA at run time]
// The CUDA code (cuda_device.cu) is a separate library, opened here with dlopen() and only on a
// machine with a driver. So a program built with CUDA also runs on a machine without it, and an
// embedding program does not link CUDA.

namespace {

constexpr const char* module_name = "libmillrace_cuda.so";

[[noreturn]] void refuse(const std::string& reason) {
  throw Error("no GPU: " + reason).stage("cuda").kind(ErrorKind::usage);
}

// MILLRACE_CUDA_MODULE if it is set; else beside the program or library that holds this code, where
// the build and the installation put it.
std::vector<std::filesystem::path> candidate_places() {
  if (const char* given = std::getenv("MILLRACE_CUDA_MODULE")) return {given};
  std::vector<std::filesystem::path> places;
  Dl_info self{};
  if (dladdr(reinterpret_cast<void*>(&candidate_places), &self) != 0 && self.dli_fname) {
    auto folder = std::filesystem::absolute(self.dli_fname).parent_path();
    places.push_back(folder / module_name);
    places.push_back(folder / ".." / "lib" / module_name);
  }
  places.emplace_back(MILLRACE_CUDA_MODULE_PATH);
  return places;
}

}  // namespace

std::shared_ptr<Device> open_cuda_device(int ordinal) {
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (driver == nullptr) refuse("there is no NVIDIA driver on this machine");
  dlclose(driver);
  void* module = nullptr;
  for (const auto& place : candidate_places()) {
    if (std::filesystem::exists(place)) {
      module = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (module == nullptr) refuse(dlerror());
      break;
    }
  }
  if (module == nullptr) refuse("this build has no CUDA half (MILLRACE_CUDA was off)");
  using Open = Device* (*)(int ordinal, std::string* error);
  auto open = reinterpret_cast<Open>(dlsym(module, "millrace_open_cuda_device"));
  if (open == nullptr) refuse(std::string(module_name) + " is of another version");
  std::string error;
  Device* device = open(ordinal, &error);
  if (device == nullptr) refuse(error);
  return std::shared_ptr<Device>(device);
}

std::shared_ptr<Device> find_device() {
  try {
    auto device = open_cuda_device();
    log(LogLevel::info, "device: " + device->name());
    return device;
  } catch (const Error& error) {
    log(LogLevel::info, "device: CPU (" + error.reason() + ")");
    return nullptr;
  }
}

}  // namespace millrace
