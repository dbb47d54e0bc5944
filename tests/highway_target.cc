// Holds Highway to one instruction set, so that the same tests run over the code of each: linked to
// every test program, and asked by MILLRACE_HIGHWAY_TARGET=AVX2 (or SSSE3, SSE4, AVX3, AVX3_DL).
// Where the processor has no such instructions the program ends with 77, which ctest counts as
// skipped.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <hwy/targets.h>

namespace millrace {
namespace {

[[gnu::constructor]] void hold_highway() {
  const char* wanted = std::getenv("MILLRACE_HIGHWAY_TARGET");
  if (wanted == nullptr) return;
  for (std::int64_t rest = hwy::SupportedTargets(); rest != 0; rest &= rest - 1) {
    const std::int64_t target = rest & -rest;
    if (std::string(hwy::TargetName(target)) != wanted) continue;
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    return;
  }
  std::fprintf(stderr, "this processor has no %s\n", wanted);
  std::_Exit(77);
}

}  // namespace
}  // namespace millrace
