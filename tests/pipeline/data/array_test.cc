#include "tests/pipeline/numbers.h"
#include "tests/reference.h"

#include <millrace/pipeline/data/array.h>

#include <dlpack/dlpack.h>
#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(Shape, CountsComparesAndRefusesWhatIsTooLarge) {
  EXPECT_EQ((Shape{3, 4, 5}).elements(), 60);
  EXPECT_EQ(Shape().elements(), 1);
  EXPECT_EQ((Shape{3, 0}).elements(), 0);
  EXPECT_TRUE((Shape{-1, 4}).admits({9, 4}));
  EXPECT_FALSE((Shape{-1, 4}).admits({9, 5}));
  EXPECT_FALSE((Shape{-1, 4}).admits({4}));
  EXPECT_EQ(to_string(Shape{3, -1}), "[3, -1]");
  constexpr std::int64_t huge = std::int64_t{1} << 40;
  EXPECT_THROW((Shape{huge, huge}).elements(), Error);
  EXPECT_THROW((Shape{1, 1, 1, 1, 1, 1, 1, 1, 1}), Error);
}

TEST(Buffer, GivesItsBytesBackWithTheLastHandle) {
  int given_back = 0;
  int bytes = 0;
  {
    Buffer a = Buffer::adopt(&bytes, sizeof bytes, Memory::mapped, [&] { ++given_back; });
    EXPECT_FALSE(a.shared());
    Buffer b = a;
    EXPECT_TRUE(a.shared());
    Buffer c = std::move(b);
    a = c;
    c = Buffer();
    EXPECT_FALSE(a.shared());
    EXPECT_EQ(given_back, 0);
  }
  EXPECT_EQ(given_back, 1);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(Buffer::allocate(10).data()) % 64, 0U);
}

TEST(Array, ViewsRowsAndShapesOfOneBuffer) {
  Array array = Array::empty(DType::int32, {2, 3});
  for (int i = 0; i < 6; ++i) array.as<std::int32_t>()[static_cast<std::size_t>(i)] = i;
  EXPECT_EQ(array.row(1).as<const std::int32_t>()[0], 3);
  EXPECT_EQ(array.row(1).shape(), (Shape{3}));
  EXPECT_EQ(array.row(1).row(2).as<std::int32_t>()[0], 5);
  EXPECT_EQ(array.reshaped({3, 2}).row(2).as<std::int32_t>()[1], 5);
  Array copy = array.clone();
  copy.as<std::int32_t>()[0] = 99;
  EXPECT_EQ(array.as<std::int32_t>()[0], 0);
}

TEST(Array, RefusesWrongTypesShapesAndShortBuffers) {
  Array array = Array::empty(DType::int32, {2, 3});
  EXPECT_EQ(message_of([&] { array.as<float>(); }), "the array holds int32, not float32");
  EXPECT_THROW(array.row(2), Error);
  EXPECT_THROW(array.row(-1), Error);
  EXPECT_THROW(array.reshaped({7}), Error);
  EXPECT_THROW(Array::empty(DType::uint8, {-1}), Error);
  EXPECT_NE(
      message_of([] { Array(DType::int64, {3}, Buffer::allocate(16)); }).find("needs 24 bytes"),
      std::string::npos);
  EXPECT_THROW(Array(DType::uint8, {1}, Buffer::allocate(16), 17), Error);
  EXPECT_EQ(Array::empty(DType::bfloat16, {2}).as<std::uint16_t>().size(), 2U);
}

TEST(Dlpack, SharesTheBytesAndKeepsThemUntilDeleted) {
  Buffer watched = Buffer::allocate(24);
  DLManagedTensor* tensor = to_dlpack(Array(DType::int64, {3}, watched));
  EXPECT_TRUE(watched.shared());
  EXPECT_EQ(tensor->dl_tensor.data, watched.data());
  tensor->deleter(tensor);
  EXPECT_FALSE(watched.shared());
  // Borrowed memory may be gone tomorrow, so it is cloned.
  std::int64_t local[3] = {1, 2, 3};
  tensor = to_dlpack(Array(DType::int64, {3}, Buffer::borrow(local, sizeof local)));
  EXPECT_NE(tensor->dl_tensor.data, static_cast<void*>(local));
  EXPECT_EQ(static_cast<std::int64_t*>(tensor->dl_tensor.data)[2], 3);
  tensor->deleter(tensor);
}

#ifdef MILLRACE_DLPACK_PROBE
// numpy and torch import what a small library of ours exports, see its values, and let it go.
TEST(Dlpack, IsReadByNumpyAndTorch) {
  std::string output =
      run_python(R"(
import ctypes, sys
import numpy
with_torch = sys.argv[2] == '1'
if with_torch: import torch
probe = ctypes.CDLL(sys.argv[1])
probe.export_array.restype = ctypes.c_void_p
probe.export_array.argtypes = [ctypes.c_int]
new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
class Exported:
    def __init__(self, kind): self.kind = kind
    def __dlpack__(self, **_): return new_capsule(probe.export_array(self.kind), b'dltensor', None)
    def __dlpack_device__(self): return (1, 0)
names = ['bool', 'uint8', 'int8', 'uint16', 'int16', 'uint32', 'int32', 'uint64', 'int64',
         'float16', 'bfloat16', 'float32', 'float64']
for kind, name in enumerate(names):
    if with_torch:
        t = torch.from_dlpack(Exported(kind))
        assert str(t.dtype) == 'torch.' + name and tuple(t.shape) == (2, 3), (t.dtype, name)
        if name not in ('float16', 'bfloat16', 'bool'):
            assert t.flatten().tolist() == [0, 1, 2, 3, 4, 5], t
        del t
    if name != 'bfloat16':
        n = numpy.from_dlpack(Exported(kind))
        assert n.dtype == numpy.dtype(name) and n.shape == (2, 3), (n.dtype, name)
        if name not in ('float16', 'bool'):
            assert n.reshape(-1).tolist() == [0, 1, 2, 3, 4, 5], n
        del n
assert probe.alive() == 0, probe.alive()
print('all read')
)",
                 MILLRACE_DLPACK_PROBE + std::string(MILLRACE_PYTHON_TORCH ? " 1" : " 0"));
  EXPECT_EQ(output, "all read\n");
}
#endif

}  // namespace
}  // namespace millrace
