// A stage that maps batches to tokens, between the decoders and a cache: `preprocess tokens` runs
// it. Trained models plug in here; a codebook in a file needs no training.
//
//   auto stage = load_codebook("codebook.npy", {.patch = 8});
//   Array tokens = stage->encode(images);     // uint8 [n, 256, 256, 3] -> int64 [n, 32, 32]
#pragma once

#include <millrace/pipeline/data/array.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace millrace {

// Thread-safe: nothing changes once it is made.
class TokenStage {
 public:
  virtual ~TokenStage() = default;
  virtual std::string name() const = 0;
  // Of everything that decides the tokens, e.g. the weights: caches record it.
  virtual std::string hash() const = 0;
  // All tokens are below this.
  virtual std::int64_t vocabulary() const = 0;
  // What one sample becomes; throws an Error that says what sizes would do.
  virtual Shape token_shape(const Shape& sample) const = 0;
  // uint8 [n, height, width, channels] or [n, frames, height, width, channels] to int64 [n, ...].
  virtual Array encode(const Array& batch) const = 0;
};

struct CodebookOptions {
  std::int64_t patch = 0;  // side in pixels; 0: from the vectors' length, for `channels`
  std::int64_t channels = 3;
  std::int64_t frames = 1;  // of one patch, for video
  int threads = 1;
};

// The nearest vector of a codebook for every patch: float32 [entries, frames * patch * patch *
// channels], over pixels in [0, 1], in an .npy file. Ties go to the lower token.
std::shared_ptr<const TokenStage> load_codebook(const std::filesystem::path& path,
                                                const CodebookOptions& options = {});

}  // namespace millrace
