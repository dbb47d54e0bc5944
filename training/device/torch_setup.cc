#include "torch_setup.h"

#include <millrace/pipeline/base/log.h>

#include <cstdlib>
#include <mutex>

#include <ATen/Parallel.h>
#include <c10/util/Logging.h>

#if defined(__linux__) && defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace millrace {

namespace {

AmxTiles tiles_found = AmxTiles::absent;

#if defined(__linux__) && defined(__x86_64__)

// Leaf 7 of cpuid, bit 24 of edx: the processor has AMX tiles.
bool processor_has_tiles() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (edx & (1U << 24)) != 0;
}

// Note [AMX permission]. Tile registers are 8 KiB a thread, so Linux gives them only to processes
// that ask. A tile instruction without that permission ends the process with SIGILL. oneDNN looks
// at the processor, not at the permission, so it must be asked for before oneDNN runs. The kernel
// refuses where a signal stack is too small for the registers, and sandboxes may refuse anything.
// The call is made on every processor: where there are no tiles it fails and changes nothing.
AmxTiles request_tiles() {
  constexpr long request_permission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long tile_data = 18;               // XFEATURE_XTILEDATA
  const bool granted = syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
  if (!processor_has_tiles()) return AmxTiles::absent;
  return granted ? AmxTiles::granted : AmxTiles::refused;
}

#else

AmxTiles request_tiles() {
  return AmxTiles::absent;
}

#endif

// Before main(): threads of other libraries have hardly begun, and oneDNN has not run.
[[gnu::constructor]] void set_up_before_main() {
  set_up_torch();
}

}  // namespace

namespace detail {

std::string onednn_limit(AmxTiles tiles, const char* limit_of_user) {
  if (tiles != AmxTiles::refused || limit_of_user != nullptr) return "";
  return "AVX512_CORE_FP16";  // the set below AVX512_CORE_AMX
}

}  // namespace detail

void set_up_torch() {
  static std::once_flag once;
  std::call_once(once, [] {
    tiles_found = request_tiles();
    const std::string limit =
        detail::onednn_limit(tiles_found, std::getenv("ONEDNN_MAX_CPU_ISA"));  // NOLINT: one thread
    if (!limit.empty()) {
      setenv("ONEDNN_MAX_CPU_ISA", limit.c_str(), 0);  // NOLINT: one thread
      log(LogLevel::warning, "the kernel refused the AMX tile registers: oneDNN uses " + limit);
    }
    c10::initLogging();
    at::internal::lazy_init_num_threads();
  });
}

AmxTiles amx_tiles() {
  set_up_torch();
  return tiles_found;
}

}  // namespace millrace

// Nothing else refers to this file, so the linker would drop it from a static library. The linker
// option --undefined requires this symbol, so that the file is linked and its constructor runs.
extern "C" void millrace_torch_setup() {
  millrace::set_up_torch();
}
