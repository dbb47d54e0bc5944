// How fast a moving average of weights follows the model (see ema.h), without LibTorch.
//
//   EmaOptions options{.beta = 0.995, .update_every = 1};
#pragma once

#include <cstdint>

namespace millrace {

struct EmaOptions {
  double beta = 0.9999;
  std::int64_t update_after_step = 100;
  std::int64_t update_every = 10;
  double inv_gamma = 1;
  double power = 2.0 / 3;
  double min_value = 0;
};

}  // namespace millrace
