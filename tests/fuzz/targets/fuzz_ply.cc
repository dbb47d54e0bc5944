#include "tests/fuzz/targets/mesh_target.h"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  millrace::fuzz_mesh({data, size}, millrace::MeshFormat::ply);
  return 0;
}
