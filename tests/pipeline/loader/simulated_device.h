// A device that is not there: a thread that does copies and kernels later, with latency and
// bandwidth, and if asked in any order that the fences allow. It reads its sources at the very end
// of a copy, so whoever writes into them too early is found out by wrong values.
#pragma once

#include <millrace/pipeline/device/device.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

namespace millrace {

struct SimulatedOptions {
  std::chrono::microseconds latency{0};
  double bytes_per_second = 1e12;
  bool out_of_order = false;  // copies need not end in the order in which they were queued
  unsigned seed = 1;
};

class SimulatedDevice : public Device {
 public:
  explicit SimulatedDevice(SimulatedOptions options = {})
      : options_(options), engine_(options.seed), thread_([this] { run(); }) {}
  ~SimulatedDevice() override {
    {
      std::lock_guard lock(mutex_);
      closing_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  std::string name() const override { return "simulated"; }
  Buffer allocate_host(std::size_t bytes) override { return tagged(bytes, Memory::pinned); }
  Buffer allocate(std::size_t bytes) override { return tagged(bytes, Memory::device); }

  FencePtr submit(std::span<const Transfer> transfers, std::span<const FencePtr> after,
                  std::function<void()> host_free) override {
    std::vector<FencePtr> waits(after.begin(), after.end());
    std::vector<Transfer> work(transfers.begin(), transfers.end());
    std::size_t bytes = 0;
    for (const Transfer& t : work) bytes += t.bytes;
    auto duration =
        options_.latency + std::chrono::microseconds(static_cast<std::int64_t>(
                               1e6 * static_cast<double>(bytes) / options_.bytes_per_second));
    auto action = [work] {
      for (const Transfer& t : work) {
        std::memcpy(t.to, t.from, t.bytes);
        for (std::int64_t row = 0; t.convert != nullptr && row < t.rows; ++row) convert(t, row);
      }
    };
    return queue(nullptr, std::move(waits), !options_.out_of_order, duration, action,
                 std::move(host_free));
  }
  void wait(void* stream, const FencePtr& fence) override {
    std::lock_guard lock(mutex_);
    waits_of_[stream].push_back(fence);
  }
  FencePtr record(void* stream) override {
    return launch(stream, [] {});
  }

  // A kernel of the consumer: runs on `stream` after what the stream waits for.
  FencePtr launch(void* stream, std::function<void()> kernel,
                  std::chrono::microseconds duration = {}) {
    std::vector<FencePtr> waits;
    {
      std::lock_guard lock(mutex_);
      waits = waits_of_[stream];
    }
    return queue(stream, std::move(waits), true, duration, std::move(kernel), {});
  }
  // For the test's end only: until all that was queued is done.
  void synchronise() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return pending_.empty(); });
  }

 private:
  struct SimulatedFence : Fence {
    std::atomic<bool> is_done{false};
    bool done() const override { return is_done; }
  };
  struct Work {
    std::vector<FencePtr> waits;
    std::chrono::microseconds duration;
    std::function<void()> action, afterwards;
    std::shared_ptr<SimulatedFence> fence;
  };

  static void convert(const Transfer& t, std::int64_t row) {
    const ToFloatElement element;
    const auto* from = reinterpret_cast<const std::uint8_t*>(t.to) + row * t.pixels * t.channels;
    float* to = t.converted + row * t.pixels * t.channels;
    for (std::int64_t p = 0; p < t.pixels; ++p) {
      for (int c = 0; c < t.channels; ++c) {
        auto i = static_cast<std::size_t>(c);
        to[t.convert->channels_first ? c * t.pixels + p : p * t.channels + c] =
            element(from[p * t.channels + c], t.convert->scale[i], t.convert->shift[i]);
      }
    }
  }
  // Freed memory is kept until the device goes, as if freeing waited for all queued work, which is
  // what CUDA does. Shared, since buffers may outlive the device.
  Buffer tagged(std::size_t bytes, Memory memory) {
    Buffer plain = Buffer::allocate(bytes);
    std::byte* data = plain.data();
    return Buffer::adopt(data, bytes, memory, [plain, freed = freed_] {
      std::lock_guard lock(freed->mutex);
      freed->buffers.push_back(plain);
    });
  }
  struct Freed {
    std::mutex mutex;
    std::vector<Buffer> buffers;
  };

  FencePtr queue(void* stream, std::vector<FencePtr> waits, bool in_order,
                 std::chrono::microseconds duration, std::function<void()> action,
                 std::function<void()> afterwards) {
    std::lock_guard lock(mutex_);
    if (in_order) waits.push_back(last_of_[stream]);
    auto fence = std::make_shared<SimulatedFence>();
    last_of_[stream] = fence;
    pending_.push_back(
        {std::move(waits), duration, std::move(action), std::move(afterwards), fence});
    changed_.notify_all();
    return fence;
  }

  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      std::vector<std::size_t> ready;
      for (std::size_t i = 0; i < pending_.size(); ++i) {
        bool free = true;
        for (const FencePtr& fence : pending_[i].waits) free = free && (!fence || fence->done());
        if (free) ready.push_back(i);
      }
      if (ready.empty()) {
        if (closing_ && pending_.empty()) return;
        changed_.wait(lock);
        continue;
      }
      // Streams are independent: what is free to run runs in any order.
      Work work = pending_[ready[engine_() % ready.size()]];
      lock.unlock();
      std::this_thread::sleep_for(work.duration);
      work.action();
      work.fence->is_done = true;
      if (work.afterwards) work.afterwards();
      lock.lock();
      std::erase_if(pending_, [&](const Work& w) { return w.fence == work.fence; });
      changed_.notify_all();
    }
  }

  SimulatedOptions options_;
  std::mt19937 engine_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Work> pending_;
  std::map<void*, std::vector<FencePtr>> waits_of_;
  std::map<void*, FencePtr> last_of_;
  bool closing_ = false;
  std::shared_ptr<Freed> freed_ = std::make_shared<Freed>();
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace millrace
