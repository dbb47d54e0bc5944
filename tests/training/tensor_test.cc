#include <millrace/training/tensor.h>

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(Tensor, SharesTheArraysMemoryAndKeepsIt) {
  torch::Tensor tensor;
  std::byte* data = nullptr;
  {
    Array array = Array::empty(DType::int64, {2, 3});
    for (std::int64_t i = 0; i < 6; ++i)
      array.as<std::int64_t>()[static_cast<std::size_t>(i)] = i * i;
    data = array.data();
    tensor = to_tensor(array);
    EXPECT_TRUE(array.buffer().shared());
  }
  EXPECT_EQ(tensor.data_ptr(), data);
  EXPECT_EQ(tensor.sizes(), (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(tensor[1][2].item<std::int64_t>(), 25);
}

TEST(Tensor, HasTheArraysTypeForEveryType) {
  for (DType dtype : {DType::boolean, DType::uint8, DType::int8, DType::uint16, DType::int16,
                      DType::uint32, DType::int32, DType::uint64, DType::int64, DType::float16,
                      DType::bfloat16, DType::float32, DType::float64}) {
    torch::Tensor tensor = to_tensor(Array::empty(dtype, {4}));
    EXPECT_EQ(tensor.element_size(), static_cast<std::int64_t>(item_size(dtype)));
    EXPECT_EQ(tensor.numel(), 4);
  }
}

}  // namespace
}  // namespace millrace
