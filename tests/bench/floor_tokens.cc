// Threads that only copy random rows of a memory-mapped file into batches: the upper limit for a
// token loader. usage: floor_tokens gather THREADS PASSES FILE   (raw int64 rows of 1024)
#include "floor.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

constexpr std::size_t row_bytes = 8192, batch_rows = 64, batches = 8;

}  // namespace

int main(int count, char** arguments) {
  if (count != 5) {
    std::fputs("usage: floor_tokens gather THREADS PASSES FILE\n", stderr);
    return 2;
  }
  int file = ::open(arguments[4], O_RDONLY | O_CLOEXEC);
  struct stat status {};
  if (file < 0 || ::fstat(file, &status) != 0) {
    std::perror(arguments[4]);
    return 1;
  }
  auto bytes = static_cast<std::size_t>(status.st_size);
  void* map = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED | MAP_POPULATE, file, 0);
  if (map == MAP_FAILED) {
    std::perror("mmap");
    return 1;
  }
  const auto* rows = static_cast<const std::byte*>(map);
  std::uint64_t number = bytes / row_bytes;
  // One call copies a whole batch, so that the shared counter costs nothing.
  millrace::measure_floor(
      {.workload = "tokens",
       .peer = "gather in C",
       .note = "random rows of the mapping, copied",
       .version = "memcpy",
       .workers = std::atoi(arguments[2]),
       .passes = std::atoi(arguments[3])},
      static_cast<std::int64_t>(number / batch_rows),
      [&] {
        return
            [&, to = std::vector<std::byte>(batches * batch_rows * row_bytes), n = std::size_t{0},
             state =
                 std::uint64_t{88172645463325252} +
                 std::hash<std::thread::id>()(std::this_thread::get_id())](std::int64_t) mutable {
              std::byte* batch = to.data() + n++ % batches * batch_rows * row_bytes;
              for (std::size_t i = 0; i < batch_rows; ++i) {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                std::memcpy(batch + i * row_bytes, rows + state % number * row_bytes, row_bytes);
                asm volatile("" ::"r"(batch) : "memory");
              }
            };
      },
      batch_rows);
}
