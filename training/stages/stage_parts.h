// What stages share. Private to training/stages.
#pragma once

#include <millrace/pipeline/array.h>

#include <torch/types.h>

namespace millrace {

// Values in [0, 1] as bytes, of the same shape.
Array to_pixels(const torch::Tensor& pictures);

}  // namespace millrace
