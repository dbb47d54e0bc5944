// The library millrace_gpu, which links libtorch_cuda and NCCL. accelerator.cc opens it with dlopen
// if the machine has a driver; that is what loads libtorch_cuda.
#include <millrace/training/device/accelerator.h>

#include <exception>
#include <string>

#include <ATen/Context.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

namespace millrace {
namespace {

class CudaAccelerator : public Accelerator {
 public:
  explicit CudaAccelerator(c10::DeviceIndex ordinal) : device_(torch::kCUDA, ordinal) {
    at::globalContext().lazyInitDevice(torch::kCUDA);
    c10::cuda::set_device(ordinal);
  }

  std::string name() const override {
    return c10::str("CUDA device ", static_cast<int>(device_.index()), " (",
                    at::cuda::getDeviceProperties(device_.index())->name, ")");
  }
  torch::Device device() const override { return device_; }
  void* stream() const override {
    return c10::cuda::getCurrentCUDAStream(device_.index()).stream();
  }
  c10::intrusive_ptr<c10d::Backend> join(const c10::intrusive_ptr<c10d::Store>& store, int rank,
                                         int world, std::chrono::milliseconds timeout) override {
    auto options = c10d::ProcessGroupNCCL::Options::create();
    options->timeout = timeout;
    auto group = c10::make_intrusive<c10d::ProcessGroupNCCL>(store, rank, world, options);
    group->setBoundDeviceId(device_);
    return group;
  }

 private:
  torch::Device device_;
};

}  // namespace
}  // namespace millrace

// Found with dlsym. Returns null and sets *error if the device cannot be used. The caller owns the
// result.
extern "C" __attribute__((visibility("default"))) millrace::Accelerator* millrace_open_accelerator(
    int ordinal, std::string* error) {
  try {
    const int count = c10::cuda::device_count();
    if (ordinal < 0 || ordinal >= count) {
      *error = c10::str("there is no device ", ordinal, " (", count, " found)");
      return nullptr;
    }
    return new millrace::CudaAccelerator(static_cast<c10::DeviceIndex>(ordinal));
  } catch (const std::exception& failure) {
    const std::string text = failure.what();
    *error = text.substr(0, text.find('\n'));
    return nullptr;
  }
}
