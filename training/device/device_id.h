// A device as plain numbers, so that options can name one without LibTorch's headers. Converts from
// and to torch::Device where those headers are included.
//
//   DeviceId device = torch::Device("cuda:1");
//   model->to(device);
#pragma once

#include <concepts>
#include <type_traits>

namespace millrace {

class DeviceId {
 public:
  constexpr DeviceId() = default;  // the CPU

  // NOLINTNEXTLINE(google-explicit-constructor): stands for a torch::Device in options
  template <class Device>
  requires requires(const Device& d) { d.type(), d.index(); }
  constexpr DeviceId(const Device& device)
      : type_(static_cast<int>(device.type())), index_(static_cast<int>(device.index())) {}

  // NOLINTNEXTLINE(google-explicit-constructor): the same, the other way
  template <class Device>
  requires requires(const Device& d) { d.type(), d.index(); }
  constexpr operator Device() const {
    using Type = std::decay_t<decltype(std::declval<Device>().type())>;
    using Index = std::decay_t<decltype(std::declval<Device>().index())>;
    return Device(static_cast<Type>(type_), static_cast<Index>(index_));
  }

  constexpr bool is_cpu() const { return type_ == 0; }

 private:
  int type_ = 0;    // as c10::DeviceType numbers them: 0 is the CPU
  int index_ = -1;  // -1: the current device of that type
};

}  // namespace millrace
