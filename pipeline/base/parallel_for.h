// Calls a function for 0..count-1 on the threads of a pool and on the calling thread. The caller
// waits only for calls that other threads have begun, so it may itself be a task of the pool.
//
//   std::vector<double> squares(100);
//   parallel_for(*Pool::shared(), 100, [&](std::int64_t i) { squares[i] = 1.0 * i * i; });
#pragma once

#include <millrace/pipeline/base/pool.h>

#include <cstdint>
#include <functional>

namespace millrace {

// Returns when all calls are done. The first exception stops further calls and is rethrown here.
void parallel_for(Pool& pool, std::int64_t count,
                  const std::function<void(std::int64_t)>& function);

}  // namespace millrace
