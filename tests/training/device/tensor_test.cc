#include <millrace/pipeline/base/error.h>
#include <millrace/training/device/tensor.h>

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
    EXPECT_EQ(to_dtype(tensor.scalar_type()), dtype);
  }
}

TEST(Tensor, IsCopiedIntoAnArrayWhateverItsLayout) {
  torch::Tensor tensor = torch::arange(24, torch::kInt32).reshape({2, 3, 4}).permute({2, 0, 1});
  Array array = to_array(tensor.to(torch::kFloat32).requires_grad_());
  EXPECT_EQ(array.dtype(), DType::float32);
  EXPECT_EQ(array.shape(), Shape({4, 2, 3}));
  EXPECT_TRUE(to_tensor(array).equal(tensor.to(torch::kFloat32)));
  EXPECT_EQ(to_array(torch::empty({0, 3})).bytes(), 0U);
  tensor.zero_();
  EXPECT_EQ(array.as<float>()[1], 4);
  EXPECT_THROW(to_array(torch::empty({1}, torch::kComplexFloat)), Error);
}

}  // namespace
}  // namespace millrace
