// Private to the loader: a pool of buffers for batches. Pinned memory takes milliseconds to
// allocate, and new plain memory costs a page fault every 4 KiB, so a buffer that the consumer has
// released is used again.
//
// Note [device memory comes back with a fence]
// When the last handle of a device buffer is destroyed, kernels that read it may still be queued.
// So the pool records a fence on the consumer's stream at that moment, and the next copy into the
// buffer waits for the fence.
#pragma once

#include <millrace/pipeline/data/buffer.h>
#include <millrace/pipeline/device/device.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace millrace::detail {

class BufferPool {
 public:
  // `fence` is called when a buffer comes back; the buffer may be written again when the returned
  // fence is done, or at once if it is null.
  explicit BufferPool(std::function<Buffer(std::size_t)> allocate,
                      std::function<FencePtr()> fence = {})
      : state_(std::make_shared<State>()) {
    state_->allocate = std::move(allocate);
    state_->fence = std::move(fence);
  }

  struct Taken {
    Buffer buffer;  // at least as large as requested
    FencePtr after;
  };
  // Thread-safe. The buffer may outlive the pool.
  Taken take(std::size_t bytes) {
    Taken found = state_->find(bytes);
    if (found.buffer.data() == nullptr) found.buffer = state_->allocate(bytes > 0 ? bytes : 1);
    std::byte* data = found.buffer.data();
    std::size_t size = found.buffer.size();
    Memory memory = found.buffer.memory();
    auto give_back = [state = state_, kept = std::move(found.buffer)]() mutable {
      state->keep(std::move(kept));
    };
    return {Buffer::adopt(data, size, memory, std::move(give_back)), std::move(found.after)};
  }

 private:
  struct State {
    static constexpr std::size_t most_idle = 8;
    std::function<Buffer(std::size_t)> allocate;
    std::function<FencePtr()> fence;
    std::mutex mutex;
    std::vector<Taken> idle;

    // The smallest buffer that is large enough, but not more than twice as large as needed.
    Taken find(std::size_t bytes) {
      std::lock_guard lock(mutex);
      auto best = idle.end();
      for (auto it = idle.begin(); it != idle.end(); ++it) {
        std::size_t size = it->buffer.size();
        bool fits = size >= bytes && size <= 2 * bytes;
        if (fits && (best == idle.end() || size < best->buffer.size())) best = it;
      }
      if (best == idle.end()) return {};
      Taken found = std::move(*best);
      idle.erase(best);
      return found;
    }
    void keep(Buffer buffer) {
      FencePtr after = fence ? fence() : nullptr;
      std::lock_guard lock(mutex);
      if (idle.size() < most_idle) idle.push_back({std::move(buffer), std::move(after)});
    }
  };

  std::shared_ptr<State> state_;
};

}  // namespace millrace::detail
