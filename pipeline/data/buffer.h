// Owned bytes and the kind of memory they are in. A Buffer is a handle: copies share the bytes, and
// the last one frees them. `shared()` is true while there are other copies; the loader checks it
// before it writes into a batch again, so an array that the consumer kept is never overwritten.
//
//   Buffer buffer = Buffer::allocate(1024);
//   Buffer copy = buffer;  // the same 1024 bytes
//   bool shared = buffer.shared();
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <new>
#include <utility>

namespace millrace {

enum class Memory : std::uint8_t {
  host,    // plain memory, aligned to 64 bytes
  pinned,  // host memory that a device copies from without staging
  mapped,  // a file mapping: read-only
  device,  // not readable by the host
};

class Buffer {
 public:
  static constexpr std::size_t alignment = 64;

  Buffer() = default;
  Buffer(const Buffer& other) noexcept
      : block_(other.block_), data_(other.data_), size_(other.size_), memory_(other.memory_) {
    if (block_) block_->references.fetch_add(1, std::memory_order_relaxed);
  }
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer other) noexcept {
    swap(other);
    return *this;
  }
  ~Buffer() { release(); }

  // Fresh, uninitialised host memory.
  static Buffer allocate(std::size_t bytes) {
    std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
    void* data = std::aligned_alloc(alignment, rounded > 0 ? rounded : alignment);
    if (data == nullptr) throw std::bad_alloc();
    return adopt(data, bytes, Memory::host, [data] { std::free(data); });
  }
  // Memory allocated elsewhere; `give_back` is called when the last handle is destroyed.
  static Buffer adopt(void* data, std::size_t bytes, Memory memory,
                      std::function<void()> give_back) {
    Buffer buffer = borrow(data, bytes, memory);
    buffer.block_ = new Block{{1}, std::move(give_back)};
    return buffer;
  }
  // Memory that outlives every handle; it is neither reference-counted nor freed.
  static Buffer borrow(void* data, std::size_t bytes, Memory memory = Memory::host) {
    Buffer buffer;
    buffer.data_ = static_cast<std::byte*>(data);
    buffer.size_ = bytes;
    buffer.memory_ = memory;
    return buffer;
  }

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  Memory memory() const { return memory_; }
  bool owned() const { return block_ != nullptr; }
  // The acquire pairs with the release in another handle's destructor: once this returns false, the
  // reads through other handles have happened.
  bool shared() const {
    return block_ != nullptr && block_->references.load(std::memory_order_acquire) > 1;
  }

 private:
  struct Block {
    std::atomic<std::int64_t> references;
    std::function<void()> give_back;
  };

  void swap(Buffer& other) noexcept {
    std::swap(block_, other.block_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(memory_, other.memory_);
  }
  void release() noexcept {
    if (block_ && block_->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      if (block_->give_back) block_->give_back();
      delete block_;
    }
  }

  Block* block_ = nullptr;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  Memory memory_ = Memory::host;
};

}  // namespace millrace
