#include <millrace/pipeline/base/error.h>
#include <millrace/pipeline/base/log.h>
#include <millrace/training/device/accelerator.h>

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <vector>

#include <dlfcn.h>

namespace millrace {

namespace {

constexpr const char* module_name = "libmillrace_gpu.so";

[[noreturn]] void refuse(const std::string& reason) {
  throw Error("no GPU: " + reason).stage("cuda").kind(ErrorKind::usage);
}

// MILLRACE_GPU_MODULE if set; else the installation's folder, the program's folder and the build's.
std::vector<std::filesystem::path> candidate_paths() {
  if (const char* given = std::getenv("MILLRACE_GPU_MODULE")) return {given};
  std::error_code ignored;
  const auto folder = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  return {folder / ".." / "lib" / module_name, folder / module_name, MILLRACE_GPU_MODULE_PATH};
}

bool has_driver() {
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (driver == nullptr) return false;
  dlclose(driver);
  return true;
}

void* open_module() {
  for (const auto& path : candidate_paths()) {
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) continue;
    void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (module == nullptr) refuse(dlerror());
    return module;
  }
  refuse("this build has no CUDA half (MILLRACE_CUDA was off)");
}

}  // namespace

std::unique_ptr<Accelerator> open_accelerator(int ordinal) {
  if (!has_driver()) refuse("there is no NVIDIA driver on this machine");
  void* module = open_module();
  using Open = Accelerator* (*)(int ordinal, std::string* error);
  auto open = reinterpret_cast<Open>(dlsym(module, "millrace_open_accelerator"));
  if (open == nullptr) refuse(std::string(module_name) + " is of another version");
  std::string error;
  Accelerator* accelerator = open(ordinal, &error);
  if (accelerator == nullptr) refuse(error);
  return std::unique_ptr<Accelerator>(accelerator);
}

std::unique_ptr<Accelerator> find_accelerator(const std::string& device, int local_rank) {
  if (device == "cpu") return nullptr;
  if (device == "cuda") return open_accelerator(local_rank);
  if (device == "auto") {
    try {
      return open_accelerator(local_rank);
    } catch (const Error& error) {
      log(LogLevel::info, "training on the CPU (" + error.reason() + ")");
      return nullptr;
    }
  }
  constexpr std::string_view head = "cuda:";
  int ordinal = -1;
  if (device.starts_with(head)) {
    std::from_chars(device.data() + head.size(), device.data() + device.size(), ordinal);
  }
  if (ordinal < 0) {
    throw Error("unknown device '" + device + "'; choose auto, cpu, cuda or cuda:N")
        .kind(ErrorKind::usage);
  }
  return open_accelerator(ordinal);
}

}  // namespace millrace
