// Where batches go when they do not stay on the host: memory, copies and their order. The loader
// speaks to CUDA and to the simulated device of the tests through this. No call waits for the
// device.
//
//   Loader loader(clips, {.device = open_cuda_device(0)});
//   for (const Batch& batch : loader) {
//     batch.wait_on(stream);                  // the stream, not the host, waits for the copy
//     launch_my_kernels(stream, batch["video"].data());
//   }                                         // the slot is reused after the stream is done
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

// A point in a device's work, e.g. a CUDA event.
class Fence {
 public:
  virtual ~Fence() = default;
  virtual bool done() const = 0;
};
using FencePtr = std::shared_ptr<Fence>;

// One copy to the device, and the conversion to float there if asked for.
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
  // Host memory that copies to the device run from asynchronously.
  virtual Buffer allocate_host(std::size_t bytes) = 0;
  virtual Buffer allocate(std::size_t bytes) = 0;

  // Queues the transfers behind all of `after`. The fence returned is done when the data is
  // there; `host_free` is called once, from any thread, when `from` may be written again. If this
  // throws, it is not called.
  virtual FencePtr submit(std::span<const Transfer> transfers, std::span<const FencePtr> after,
                          std::function<void()> host_free) = 0;
  // Work queued on `stream` from now on starts after `fence`.
  virtual void wait(void* stream, const FencePtr& fence) = 0;
  // Done when all that is on `stream` now is done.
  virtual FencePtr record(void* stream) = 0;
};

// The GPU. Throws an Error that says why there is none: not compiled in, no driver, no device.
std::shared_ptr<Device> open_cuda_device(int ordinal = 0);
// The GPU if there is one, else null; either way one log line says which.
std::shared_ptr<Device> find_device();

}  // namespace millrace
