// The CUDA half of the loader: pinned memory, one copy stream, events, and the fused conversion
// kernel. Built into libmillrace_cuda.so, which device.cc opens where a driver is present.
#include <millrace/pipeline/base/error.h>
#include <millrace/pipeline/device/device.h>

#include <algorithm>
#include <memory>
#include <string>

#include <cuda_runtime.h>

namespace millrace {
namespace {

void check(cudaError_t code, const char* doing) {
  if (code != cudaSuccess) {
    throw Error(std::string(doing) + ": " + cudaGetErrorString(code)).stage("cuda");
  }
}

// std::array's operator[] is not a device function, so the kernel gets plain arrays.
struct Coefficients {
  float scale[4];
  float shift[4];
};

// One thread per pixel: it reads the channels of its pixel side by side, and a warp writes 32
// neighbours of each plane.
__global__ void to_float_kernel(const std::uint8_t* from, float* to, std::int64_t rows,
                                std::int64_t pixels, int channels, bool channels_first,
                                Coefficients coefficients) {
  const ToFloatElement element;
  std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t row = blockIdx.y; row < rows; row += gridDim.y) {
    std::int64_t start = row * pixels * channels;
    for (std::int64_t p = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
         p < pixels; p += step) {
      for (int c = 0; c < channels; ++c) {
        std::int64_t target = channels_first ? c * pixels + p : p * channels + c;
        to[start + target] =
            element(from[start + p * channels + c], coefficients.scale[c], coefficients.shift[c]);
      }
    }
  }
}

class CudaFence : public Fence {
 public:
  explicit CudaFence(cudaStream_t stream) {
    check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreate");
    check(cudaEventRecord(event_, stream), "cudaEventRecord");
  }
  ~CudaFence() override { cudaEventDestroy(event_); }
  bool done() const override { return cudaEventQuery(event_) == cudaSuccess; }
  cudaEvent_t event() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

class CudaDevice : public Device {
 public:
  explicit CudaDevice(int ordinal) : ordinal_(ordinal) {
    check(cudaSetDevice(ordinal_), "cudaSetDevice");
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, ordinal_), "cudaGetDeviceProperties");
    name_ = "CUDA device " + std::to_string(ordinal_) + " (" + properties.name + ")";
    check(cudaStreamCreateWithFlags(&copies_, cudaStreamNonBlocking), "cudaStreamCreate");
  }
  ~CudaDevice() override { cudaStreamDestroy(copies_); }

  std::string name() const override { return name_; }

  Buffer allocate_host(std::size_t bytes) override {
    void* data = nullptr;
    check(cudaHostAlloc(&data, bytes, cudaHostAllocDefault), "cudaHostAlloc");
    return Buffer::adopt(data, bytes, Memory::pinned, [data] { cudaFreeHost(data); });
  }
  Buffer allocate(std::size_t bytes) override {
    check(cudaSetDevice(ordinal_), "cudaSetDevice");
    void* data = nullptr;
    check(cudaMalloc(&data, bytes), "cudaMalloc");
    return Buffer::adopt(data, bytes, Memory::device, [data] { cudaFree(data); });
  }

  FencePtr submit(std::span<const Transfer> transfers, std::span<const FencePtr> after,
                  std::function<void()> host_free) override {
    check(cudaSetDevice(ordinal_), "cudaSetDevice");
    for (const FencePtr& fence : after) wait(copies_, fence);
    for (const Transfer& t : transfers) {
      check(cudaMemcpyAsync(t.to, t.from, t.bytes, cudaMemcpyHostToDevice, copies_),
            "cudaMemcpyAsync");
    }
    for (const Transfer& t : transfers) {
      if (t.convert != nullptr && t.rows > 0 && t.pixels > 0) launch(t);
    }
    auto fence = std::make_shared<CudaFence>(copies_);
    // Last: if anything before it throws, the callback must not be called.
    auto* call = new std::function<void()>(std::move(host_free));
    auto run = [](void* data) {
      std::unique_ptr<std::function<void()>> owned(static_cast<std::function<void()>*>(data));
      (*owned)();
    };
    cudaError_t queued = cudaLaunchHostFunc(copies_, run, call);
    if (queued != cudaSuccess) {
      delete call;
      check(queued, "cudaLaunchHostFunc");
    }
    return fence;
  }

  void wait(void* stream, const FencePtr& fence) override {
    auto event = static_cast<const CudaFence&>(*fence).event();
    check(cudaStreamWaitEvent(static_cast<cudaStream_t>(stream), event, 0), "cudaStreamWaitEvent");
  }
  FencePtr record(void* stream) override {
    check(cudaSetDevice(ordinal_), "cudaSetDevice");
    return std::make_shared<CudaFence>(static_cast<cudaStream_t>(stream));
  }

 private:
  void launch(const Transfer& t) {
    constexpr int threads = 256;
    constexpr std::int64_t most_blocks = 65535;
    Coefficients coefficients{};
    std::copy(t.convert->scale.begin(), t.convert->scale.end(), coefficients.scale);
    std::copy(t.convert->shift.begin(), t.convert->shift.end(), coefficients.shift);
    dim3 grid(static_cast<unsigned>(std::min((t.pixels + threads - 1) / threads, most_blocks)),
              static_cast<unsigned>(std::min(t.rows, most_blocks)));
    to_float_kernel<<<grid, threads, 0, copies_>>>(reinterpret_cast<const std::uint8_t*>(t.to),
                                                   t.converted, t.rows, t.pixels, t.channels,
                                                   t.convert->channels_first, coefficients);
    check(cudaGetLastError(), "to_float kernel");
  }

  int ordinal_;
  std::string name_;
  cudaStream_t copies_ = nullptr;
};

}  // namespace
}  // namespace millrace

// Called by device.cc through dlsym. Returns null and sets the reason if there is no such device.
extern "C" millrace::Device* millrace_open_cuda_device(int ordinal, std::string* error) {
  try {
    int count = 0;
    millrace::check(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
    if (ordinal < 0 || ordinal >= count) {
      *error = "there is no device " + std::to_string(ordinal) + " (" + std::to_string(count) +
               " found)";
      return nullptr;
    }
    return new millrace::CudaDevice(ordinal);
  } catch (const std::exception& failure) {
    *error = failure.what();
    return nullptr;
  }
}
