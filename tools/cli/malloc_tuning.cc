#include "tools/cli/malloc_tuning.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace millrace {

void tune_malloc() {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 0x7fffffff);
  mallopt(M_TOP_PAD, 64 << 20);
#endif
}

}  // namespace millrace
