// The GPU that a rank trains on. Its half of LibTorch and NCCL are a library of their own,
// millrace_gpu, opened at run time where a driver is: a run on the CPU never loads libtorch_cuda.
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
  // The stream that LibTorch's operators run on now: what a Batch is to wait on.
  virtual void* stream() const = 0;
  // Joins the other ranks over NCCL.
  virtual c10::intrusive_ptr<c10d::Backend> join(const c10::intrusive_ptr<c10d::Store>& store,
                                                 int rank, int world,
                                                 std::chrono::milliseconds timeout) = 0;
};

// Throws an Error of kind usage that says why there is none: not compiled in, no driver, no device.
// Call it before anything else of LibTorch: what asks for CUDA earlier is told for ever that there
// is none.
std::unique_ptr<Accelerator> open_accelerator(int ordinal);

// "cpu": null. "cuda": the GPU with the rank's number on its machine. "cuda:2": that one. "auto":
// as "cuda" if there is one, else null with a line in the log.
std::unique_ptr<Accelerator> find_accelerator(const std::string& wish, int local_rank);

}  // namespace millrace
