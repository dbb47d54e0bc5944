// Memory for batches, reused. Pinned memory takes milliseconds to get, and fresh plain memory costs
// a page fault every 4 KiB, so a buffer that a consumer kept for a while comes back here.
#pragma once

#include <millrace/pipeline/buffer.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace millrace {

class BufferPool {
 public:
  explicit BufferPool(std::function<Buffer(std::size_t)> allocate)
      : state_(std::make_shared<State>()) {
    state_->allocate = std::move(allocate);
  }

  // At least `bytes` large. May be called from any thread; the buffer may outlive the pool.
  Buffer take(std::size_t bytes) {
    Buffer found = state_->find(bytes);
    if (found.data() == nullptr) found = state_->allocate(bytes > 0 ? bytes : 1);
    std::byte* data = found.data();
    std::size_t size = found.size();
    Memory memory = found.memory();
    return Buffer::adopt(data, size, memory, [state = state_, kept = std::move(found)]() mutable {
      state->keep(std::move(kept));
    });
  }

 private:
  struct State {
    static constexpr std::size_t most_idle = 4;
    std::function<Buffer(std::size_t)> allocate;
    std::mutex mutex;
    std::vector<Buffer> idle;

    // The smallest that is large enough, unless it is so large that it would be wasted.
    Buffer find(std::size_t bytes) {
      std::lock_guard lock(mutex);
      auto best = idle.end();
      for (auto it = idle.begin(); it != idle.end(); ++it) {
        bool fits = it->size() >= bytes && it->size() <= 2 * bytes;
        if (fits && (best == idle.end() || it->size() < best->size())) best = it;
      }
      if (best == idle.end()) return {};
      Buffer found = std::move(*best);
      idle.erase(best);
      return found;
    }
    void keep(Buffer buffer) {
      std::lock_guard lock(mutex);
      if (idle.size() < most_idle) idle.push_back(std::move(buffer));
    }
  };

  std::shared_ptr<State> state_;
};

}  // namespace millrace
