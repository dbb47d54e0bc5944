// How NUWA samples the codes of a video (see nuwa.h), without LibTorch.
//
//   NuwaGenerateOptions options{.temperature = 0.9, .cond_scale = 3};
#pragma once

#include <cstdint>

namespace millrace {

struct NuwaGenerateOptions {
  double filter_thres = 0.9;  // of all codes the best 1 - this are left to choose from
  double temperature = 1;
  double cond_scale = 2;        // how much the text counts; 1: no guidance
  std::int64_t num_frames = 0;  // 0: max_video_frames; more are possible
  std::int64_t decode_max_batchsize = 10;
  // Remembers what it has computed of earlier tokens; without, every token costs all before it.
  bool cached = true;
};

}  // namespace millrace
