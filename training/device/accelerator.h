// The GPU that a rank trains on. All code that needs libtorch_cuda and NCCL is in a separate
// library, millrace_gpu, which is opened with dlopen only if the machine has an NVIDIA driver.
//
//   std::unique_ptr<Accelerator> gpu = find_accelerator("auto", 0);   // local rank 0
//   if (gpu) model->to(gpu->device());
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/types.h>

namespace millrace {

class Accelerator {
 public:
  virtual ~Accelerator() = default;
  virtual std::string name() const = 0;
  virtual torch::Device device() const = 0;
  // LibTorch's current CUDA stream (a cudaStream_t), for Batch::wait_on().
  virtual void* stream() const = 0;
  // Creates an NCCL process group with the other ranks.
  virtual c10::intrusive_ptr<c10d::Backend> join(const c10::intrusive_ptr<c10d::Store>& store,
                                                 int rank, int world,
                                                 std::chrono::milliseconds timeout) = 0;
};

// Throws an Error of kind usage if no GPU can be used: not compiled in, no driver, no such device.
// Call it before any other LibTorch function: LibTorch remembers that CUDA is missing if it is
// asked before libtorch_cuda is loaded.
std::unique_ptr<Accelerator> open_accelerator(int ordinal);

// "cpu" returns null. "cuda" opens GPU number `local_rank`, "cuda:2" opens GPU 2. "auto" is "cuda"
// if that works; else it logs the reason and returns null.
std::unique_ptr<Accelerator> find_accelerator(const std::string& device, int local_rank);

}  // namespace millrace
