// The layout of the archive that is written, and Python's view of it.
#include "tests/reference.h"
#include "tests/training/checkpoint/checkpoint_samples.h"

#include <millrace/training/checkpoint/archive.h>

#include <algorithm>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace millrace {
namespace {

TEST(Archive, HasTheLayoutOfTorchSave) {
  TemporaryFolder folder;
  write_checkpoint(folder / "a.pt", sample_checkpoint());
  const std::string seen = run_python(R"(
import struct, sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as z:
    assert z.testzip() is None
    data = open(sys.argv[1], 'rb').read()
    for i in z.infolist():
        name, extra = struct.unpack('<HH', data[i.header_offset + 26:i.header_offset + 30])
        start = i.header_offset + 30 + name + extra
        assert start % 64 == 0, i.filename
        assert data[start:start + i.file_size] == z.read(i), i.filename
        assert i.compress_type == 0 and i.file_size == i.compress_size
        assert i.CRC != 0 and i.date_time[0] == 1980
        print(i.filename, i.file_size if i.filename != 'archive/data.pkl' else '')
    assert z.read('archive/version') == b'3\n' and z.read('archive/byteorder') == b'little'
    assert z.read('archive/.data/serialization_id').isdigit()
)",
                                      (folder / "a.pt").string());
  EXPECT_EQ(seen,
            "archive/data.pkl \narchive/byteorder 6\narchive/data/0 2400\narchive/data/1 56\n"
            "archive/version 2\narchive/.data/serialization_id 40\n");
}

TEST(Archive, OfEqualContentsIsEqual) {
  TemporaryFolder folder;
  write_checkpoint(folder / "a.pt", sample_checkpoint());
  write_checkpoint(folder / "b.pt", sample_checkpoint());
  EXPECT_EQ(bytes_of(folder / "a.pt"), bytes_of(folder / "b.pt"));
}

TEST(Archive, IsReadByPythonAndReadsPythons) {
  if (!MILLRACE_PYTHON_TORCH) GTEST_SKIP() << "Python cannot import torch here";
  TemporaryFolder folder;
  write_checkpoint(folder / "a.pt", sample_checkpoint());
  const std::string seen =
      run_python(R"(
import sys, torch
v = torch.load(sys.argv[1], weights_only=True)
a = torch.arange(600.).reshape(20, 30)
assert torch.equal(v['model']['a'], a) and torch.equal(v['model']['b'], a.t())
assert v['model']['b'].untyped_storage().data_ptr() == v['model']['a'].untyped_storage().data_ptr()
assert torch.equal(v['model']['c'], torch.ones(7, dtype=torch.int64))
assert v['step'] == 12 and v['lr'] == 0.25 and v['names'] == ['x', 'y', (1, 2)]
m = torch.load(sys.argv[1], weights_only=True, mmap=True)
assert torch.equal(m['model']['b'], a.t())
torch.save(v, sys.argv[2])
print('same')
)",
                 (folder / "a.pt").string() + " " + (folder / "p.pt").string());
  EXPECT_EQ(seen, "same\n");
  EXPECT_TRUE(is_sample_checkpoint(read_checkpoint(folder / "p.pt")));
}

// More records than 16 bits count: the numbers of the zip64 end record are used.
TEST(Archive, HoldsMoreThan65535Storages) {
  List tensors;
  for (std::int32_t i = 0; i < 66'000; ++i) {
    tensors.items.emplace_back(tensor_of(ElementType::int32, {1}, std::vector<std::int32_t>{i}));
  }
  TemporaryFolder folder;
  write_checkpoint(folder / "a.pt", tensors);
  const Value got = read_checkpoint(folder / "a.pt");
  ASSERT_EQ(got.as_list().size(), 66'000U);
  for (std::int32_t i : {0, 1, 65'535, 65'999}) {
    EXPECT_EQ(
        elements_of<std::int32_t>(got.as_list()[static_cast<std::size_t>(i)].as_stored_tensor()),
        std::vector<std::int32_t>{i});
  }
  EXPECT_EQ(run_python("import sys, zipfile; print(len(zipfile.ZipFile(sys.argv[1]).namelist()))",
                       (folder / "a.pt").string()),
            "66004\n");
}

// Sizes and offsets beyond 32 bits. The record is zeros, which are holes in the file and shared
// pages in memory: neither disk nor memory is used for them.
TEST(Archive, HoldsRecordsOf4GB) {
  const std::size_t large = (std::size_t{1} << 32) + 4096;
  void* zeros =
      ::mmap(nullptr, large, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(zeros, MAP_FAILED);
  TemporaryFolder folder;
  const int file = ::open((folder / "a.pt").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_GE(file, 0);
  off_t end = 0;
  detail::ZipWriter archive("archive", [&](std::span<const std::byte> piece) {
    const auto* first = static_cast<const std::byte*>(zeros);
    const bool hole = piece.data() >= first && piece.data() < first + large;
    if (!hole) {
      ASSERT_EQ(::pwrite(file, piece.data(), piece.size(), end),
                static_cast<ssize_t>(piece.size()));
    }
    end += static_cast<off_t>(piece.size());
  });
  archive.add("data/0", {static_cast<const std::byte*>(zeros), large});
  archive.add("data/1", "after");
  archive.finish();
  ::close(file);
  ::munmap(zeros, large);

  const detail::ZipReader reader(folder / "a.pt");
  EXPECT_EQ(reader.size("data/0"), large);
  EXPECT_EQ(reader.read("data/1"), "after");
  EXPECT_EQ(reader.read("version"), "3\n");
  EXPECT_EQ(run_python(R"(
import sys, zipfile
z = zipfile.ZipFile(sys.argv[1])
print(z.getinfo('archive/data/0').file_size, z.read('archive/data/1'), z.read('archive/version'))
)",
                       (folder / "a.pt").string()),
            std::to_string(large) + " b'after' b'3\\n'\n");
}

// Storages go from the tensor's memory to the sink: no piece is larger than a megabyte, and the
// bytes are the tensor's own, not a copy.
TEST(Archive, IsWrittenInPiecesWithoutCopies) {
  const StoredTensor tensor = StoredTensor::row_major(ElementType::uint8, {8 << 20});
  std::memset(tensor.storage.data(), 7, tensor.storage.size());
  std::size_t largest = 0, own = 0;
  detail::write_archive(tensor, [&](std::span<const std::byte> piece) {
    largest = std::max(largest, piece.size());
    const std::byte* first = tensor.storage.data();
    if (piece.data() >= first && piece.data() < first + tensor.storage.size()) own += piece.size();
  });
  EXPECT_EQ(largest, std::size_t{1} << 20);
  EXPECT_EQ(own, tensor.storage.size());
}

}  // namespace
}  // namespace millrace
