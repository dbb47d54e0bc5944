// A library that Python opens with ctypes: exports a 2 x 3 array of each type by DLPack.
#include <millrace/pipeline/data/array.h>

#include <atomic>

namespace {

std::atomic<int> alive_arrays{0};

template <typename T>
void count_up(const millrace::Array& array) {
  for (std::size_t i = 0; i < 6; ++i) array.as<T>()[i] = static_cast<T>(i);
}

}  // namespace

extern "C" {

int alive() {
  return alive_arrays;
}

DLManagedTensor* export_array(int kind) {
  using millrace::DType;
  auto dtype = static_cast<DType>(kind);
  ++alive_arrays;
  millrace::Buffer plain = millrace::Buffer::allocate(64);
  millrace::Buffer counted = millrace::Buffer::adopt(
      plain.data(), plain.size(), millrace::Memory::host, [plain] { --alive_arrays; });
  millrace::Array array(dtype, {2, 3}, counted);
  switch (dtype) {
    case DType::boolean:
      count_up<bool>(array);
      break;
    case DType::uint8:
      count_up<std::uint8_t>(array);
      break;
    case DType::int8:
      count_up<std::int8_t>(array);
      break;
    case DType::int16:
      count_up<std::int16_t>(array);
      break;
    case DType::uint32:
      count_up<std::uint32_t>(array);
      break;
    case DType::int32:
      count_up<std::int32_t>(array);
      break;
    case DType::uint64:
      count_up<std::uint64_t>(array);
      break;
    case DType::int64:
      count_up<std::int64_t>(array);
      break;
    case DType::float32:
      count_up<float>(array);
      break;
    case DType::float64:
      count_up<double>(array);
      break;
    default:  // uint16 and the 16-bit floats, as bits
      count_up<std::uint16_t>(array);
  }
  return millrace::to_dlpack(array);
}

}  // extern "C"
