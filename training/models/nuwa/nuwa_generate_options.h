// How NUWA samples the codes of a video (see nuwa.h), without LibTorch.
//
//   NuwaGenerateOptions options{.temperature = 0.9, .cond_scale = 3};
#pragma once

#include <cstdint>

namespace millrace {

struct NuwaGenerateOptions {
  double filter_thres = 0.9;  // only the best fraction 1 - filter_thres of the codes can be drawn
  double temperature = 1;
  double cond_scale = 2;        // guidance scale; 1 disables guidance
  std::int64_t num_frames = 0;  // 0: max_video_frames; may be larger
  std::int64_t decode_max_batchsize = 10;
  // Use a KV cache. Without it the whole prefix is recomputed for every token.
  bool cached = true;
};

}  // namespace millrace
