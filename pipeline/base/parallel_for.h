// A function over 0..count-1 on the pool's threads and on the caller's. The caller works too and
// waits only for what others have begun, so it may itself be a task of the pool.
//
//   parallel_for(*Pool::shared(), files.size(), [&](std::int64_t i) { check(files[i]); });
#pragma once

#include <millrace/pipeline/base/pool.h>

#include <cstdint>
#include <functional>

namespace millrace {

// Returns when all are done. The first exception ends it early and is thrown again here.
void parallel_for(Pool& pool, std::int64_t count,
                  const std::function<void(std::int64_t)>& function);

}  // namespace millrace
