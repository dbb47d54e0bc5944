// The interface of a device that batches are copied to: memory, copies and their order. Implemented
// for CUDA and by the simulated device of the tests. No call waits for the device.
//
//   std::shared_ptr<Device> device = find_device();  // null: no GPU
//   std::string name = device ? device->name() : "CPU";
//
// With LoaderOptions::device, the consumer calls Batch::wait_on(stream) before it queues kernels
// that read the batch: the stream, not the host, waits for the copy.
#pragma once

#include <millrace/pipeline/data/buffer.h>
#include <millrace/pipeline/device/to_float.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace millrace {

// A point in the queued work of a device, e.g. a CUDA event.
class Fence {
 public:
  virtual ~Fence() = default;
  virtual bool done() const = 0;
};
using FencePtr = std::shared_ptr<Fence>;

// One copy to the device and, if `convert` is set, the conversion to float there.
struct Transfer {
  const std::byte* from = nullptr;
  std::byte* to = nullptr;  // where the copied bytes go
  std::size_t bytes = 0;
  const ToFloat* convert = nullptr;
  float* converted = nullptr;  // where `convert` writes: `rows` samples of pixels x channels
  std::int64_t rows = 0, pixels = 0;
  int channels = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual std::string name() const = 0;
  // Pinned host memory: copies from it to the device are asynchronous.
  virtual Buffer allocate_host(std::size_t bytes) = 0;
  virtual Buffer allocate(std::size_t bytes) = 0;

  // Queues the transfers after all fences of `after`. The returned fence is done when the data is
  // on the device. `host_free` is called once, by any thread, when `from` may be written again; it
  // is not called if submit() throws.
  virtual FencePtr submit(std::span<const Transfer> transfers, std::span<const FencePtr> after,
                          std::function<void()> host_free) = 0;
  // Work queued on `stream` after this call starts after `fence`.
  virtual void wait(void* stream, const FencePtr& fence) = 0;
  // Returns a fence that is done when all work now on `stream` is done.
  virtual FencePtr record(void* stream) = 0;
};

// Opens a GPU. Throws an Error that says why there is none: not compiled in, no driver, no device.
std::shared_ptr<Device> open_cuda_device(int ordinal = 0);
// Returns the GPU, or null if there is none; logs which.
std::shared_ptr<Device> find_device();

}  // namespace millrace
