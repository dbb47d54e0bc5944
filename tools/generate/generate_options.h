// The options of `generate`: filled by the program, read by the library that runs it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace millrace {

struct GenerateOptions {
  std::string model, model_config, weights;
  std::string out;
  std::vector<std::string> texts{};
  std::string text_embeds;  // .npy [n, words, channels]
  std::string meshes;       // folder or cache to reconstruct
  std::int64_t count = 0;   // 0: one for each text, or 8
  std::int64_t batch_size = 8;
  double temperature = 1;
  double cond_scale = 1;
  double top_k = 0.1, top_p = 0;
  std::int64_t max_faces = 0;
  std::string format = "obj";
  std::int64_t side = 192;
  std::uint64_t seed = 42;
  int threads = 0;
  bool json = false;
  bool quiet = false;
};

}  // namespace millrace
