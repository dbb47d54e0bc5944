// The ordering rules between host, copies and the consumer's work, on a simulated device; and what
// can be shown of the CUDA half on a machine without a GPU.
#include "tests/pipeline/loader/simulated_device.h"
#include "tests/pipeline/numbers.h"

#include <millrace/pipeline/loader/loader.h>

#include <dlfcn.h>
#include <gtest/gtest.h>

namespace millrace {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// Picture i is filled with i, so a row that was overwritten shows at once.
class Flat : public Dataset {
 public:
  explicit Flat(std::int64_t size) : size_(size) {}
  std::int64_t size() const override { return size_; }
  const Schema& schema() const override { return schema_; }
  Status load(std::int64_t index, const LoadContext&, Sample& sample) const override {
    auto pixels = sample.out("image").as<std::uint8_t>();
    std::fill(pixels.begin(), pixels.end(), static_cast<std::uint8_t>(index));
    auto tokens = sample.resize("tokens", {1 + index % 3}).as<std::int32_t>();
    std::fill(tokens.begin(), tokens.end(), static_cast<std::int32_t>(index));
    return {};
  }

 private:
  std::int64_t size_;
  Schema schema_{{.name = "image", .dtype = DType::uint8, .shape = {9, 7, 3}},
                 {.name = "tokens", .dtype = DType::int32, .shape = {-1}}};
};

// What a consumer's kernel saw, checked when it ran, not when it was queued.
struct Check {
  std::atomic<int> batches{0}, wrong{0};
};

void consume_on_device(Loader& loader, SimulatedDevice& device, void* stream, Check& check,
                       microseconds kernel_time, bool to_float) {
  for (const Batch& batch : loader) {
    batch.wait_on(stream);
    std::vector<std::int64_t> indices(batch.indices().begin(), batch.indices().end());
    const Array& image = batch["image"];
    const Array& tokens = batch["tokens"];
    EXPECT_EQ(image.memory(), Memory::device);
    EXPECT_THROW(image.as<float>(), Error) << "the host must not read device memory";
    // Raw pointers: the kernel does not keep the arrays, so only the fences protect them.
    const std::byte* image_data = image.data();
    const auto* token_data = reinterpret_cast<const std::int32_t*>(tokens.data());
    std::int64_t elements = image.elements() / batch.size();
    std::int64_t longest = tokens.shape()[1];
    device.launch(
        stream,
        [=, &check] {
          for (std::size_t row = 0; row < indices.size(); ++row) {
            auto expected = static_cast<std::uint8_t>(indices[row]);
            for (std::int64_t i = 0; i < elements; ++i) {
              std::int64_t at = static_cast<std::int64_t>(row) * elements + i;
              bool same = to_float ? reinterpret_cast<const float*>(image_data)[at] ==
                                         static_cast<float>(expected) * (1.0F / 255)
                                   : static_cast<std::uint8_t>(image_data[at]) == expected;
              if (!same) ++check.wrong;
            }
            if (token_data[static_cast<std::int64_t>(row) * longest] != indices[row]) ++check.wrong;
          }
          ++check.batches;
        },
        kernel_time);
  }
}

TEST(LoaderDevice, NoSlotIsRewrittenBeforeItsCopyAndItsConsumerAreDone) {
  int stream = 0;
  for (bool out_of_order : {false, true}) {
    for (bool to_float : {false, true}) {
      for (int prefetch : {1, 2, 4}) {
        auto device = std::make_shared<SimulatedDevice>(SimulatedOptions{
            .latency = microseconds(300), .bytes_per_second = 50e6, .out_of_order = out_of_order});
        LoaderOptions options{.batch_size = 6,
                              .shuffle = true,
                              .prefetch = prefetch,
                              .threads = 4,
                              .collate = {{"tokens", Collate::pad(-1)}},
                              .device = device};
        if (to_float) options.to_float = {{"image", ToFloat::unit()}};
        Check check;
        {
          Loader loader(Flat(200), options);
          consume_on_device(loader, *device, &stream, check, microseconds(200), to_float);
          consume_on_device(loader, *device, &stream, check, microseconds(0), to_float);
        }
        device->synchronise();
        EXPECT_EQ(check.batches, 68);
        EXPECT_EQ(check.wrong, 0) << "out of order " << out_of_order << ", to float " << to_float
                                  << ", prefetch " << prefetch;
      }
    }
  }
}

// The fences are what protects the consumer: without wait_on the slow kernel sees other values.
// If this test fails, the test above proves nothing.
TEST(LoaderDevice, TheSimulationCatchesAConsumerThatDoesNotWait) {
  int stream = 0;
  auto device = std::make_shared<SimulatedDevice>(SimulatedOptions{.latency = milliseconds(1)});
  std::atomic<int> wrong{0};
  {
    Loader loader(Flat(120), {.batch_size = 6, .prefetch = 1, .threads = 2, .device = device});
    for (const Batch& batch : loader) {
      auto expected = static_cast<std::byte>(batch.indices()[0]);
      const std::byte* data = batch["image"].data();
      device->launch(
          &stream, [=, &wrong] { wrong += *data != expected ? 1 : 0; }, milliseconds(2));
    }
    device->synchronise();
  }
  EXPECT_GT(wrong, 0);
}

TEST(LoaderDevice, TheHostDoesNotWaitForCopies) {
  constexpr int prefetch = 3;
  auto device = std::make_shared<SimulatedDevice>(SimulatedOptions{.latency = milliseconds(200)});
  Loader loader(Flat(100), {.batch_size = 5, .prefetch = prefetch, .threads = 2, .device = device});
  auto started = std::chrono::steady_clock::now();
  auto elapsed = [&] { return std::chrono::steady_clock::now() - started; };
  // Every slot can be asked for, and given back, before the first copy has ended.
  for (int i = 0; i <= prefetch; ++i) EXPECT_TRUE(loader.next());
  EXPECT_LT(elapsed(), milliseconds(190));
  // The next one needs a slot whose copy is done: this wait is needed.
  EXPECT_TRUE(loader.next());
  EXPECT_GT(elapsed(), milliseconds(190));
}

TEST(LoaderDevice, KeepsDeviceArraysThatTheConsumerKeeps) {
  int stream = 0;
  auto device = std::make_shared<SimulatedDevice>(SimulatedOptions{.latency = microseconds(100)});
  std::vector<Array> kept;
  std::vector<std::int64_t> first;
  {
    Loader loader(Flat(60), {.batch_size = 5, .prefetch = 1, .threads = 2, .device = device});
    for (const Batch& batch : loader) {
      batch.wait_on(&stream);
      kept.push_back(batch["image"]);
      first.push_back(batch.indices()[0]);
    }
    device->synchronise();
  }
  for (std::size_t i = 0; i < kept.size(); ++i) {
    EXPECT_EQ(static_cast<std::int64_t>(*kept[i].data()), first[i]);
  }
}

TEST(LoaderDevice, ClosesWithCopiesInFlight) {
  for (int round = 0; round < 20; ++round) {
    auto device = std::make_shared<SimulatedDevice>(
        SimulatedOptions{.latency = milliseconds(2), .out_of_order = round % 2 == 0});
    Loader loader(Flat(100), {.batch_size = 5, .threads = 2, .device = device});
    for (int i = 0; i < round % 5; ++i) loader.next();
    if (round % 3 == 0) loader.seek({});
  }
}

class BrokenDevice : public SimulatedDevice {
 public:
  FencePtr submit(std::span<const Transfer>, std::span<const FencePtr>,
                  std::function<void()>) override {
    throw Error("the bus fell off");
  }
};

TEST(LoaderDevice, ADeviceErrorReachesTheConsumer) {
  Loader loader(Flat(100),
                {.batch_size = 5, .threads = 2, .device = std::make_shared<BrokenDevice>()});
  EXPECT_NE(message_of([&] { loader.next(); }).find("transfer: the bus fell off"),
            std::string::npos);
}

TEST(CudaDevice, WithoutADriverTheProgramRunsOnTheCpuAndSaysSo) {
  if (dlopen("libcuda.so.1", RTLD_LAZY) != nullptr) GTEST_SKIP() << "there is a driver here";
  CapturedLog log;
  EXPECT_EQ(find_device(), nullptr);
  EXPECT_EQ(log.text(), "device: CPU (no GPU: there is no NVIDIA driver on this machine)\n");
  EXPECT_THROW(open_cuda_device(), Error);
}

#ifdef MILLRACE_CUDA_MODULE
// The CUDA half is compiled and linked: it loads, and asks the CUDA runtime for a device.
TEST(CudaDevice, TheModuleLoadsAndTellsThatThereIsNoDevice) {
  void* module = dlopen(MILLRACE_CUDA_MODULE, RTLD_NOW);
  ASSERT_NE(module, nullptr) << dlerror();
  using Open = Device* (*)(int, std::string*);
  auto open = reinterpret_cast<Open>(dlsym(module, "millrace_open_cuda_device"));
  ASSERT_NE(open, nullptr);
  std::string error;
  std::unique_ptr<Device> device(open(0, &error));
  if (device) {
    EXPECT_NE(device->name().find("CUDA device 0"), std::string::npos);
  } else {
    EXPECT_NE(error.find("cuda: cudaGetDeviceCount: "), std::string::npos) << error;
  }
}
#endif

}  // namespace
}  // namespace millrace
