// Encodes batches of images or clips as tokens: `preprocess tokens` uses it between the decoders
// and a cache. Trained models implement TokenEncoder; load_codebook() is one that needs no
// training.
//
//   auto encoder = load_codebook("codebook.npy", {.patch = 8});
//   Array images = Array::empty(DType::uint8, {16, 256, 256, 3});
//   Array tokens = encoder->encode(images);  // int64 [16, 32, 32]
#pragma once

#include <millrace/pipeline/data/array.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace millrace {

// Thread-safe: it has no state that changes.
class TokenEncoder {
 public:
  virtual ~TokenEncoder() = default;
  virtual std::string name() const = 0;
  // A hash of everything that the tokens depend on, e.g. the weights. Caches record it.
  virtual std::string hash() const = 0;
  // Tokens are 0..vocabulary()-1.
  virtual std::int64_t vocabulary() const = 0;
  // The shape of the tokens of one sample. Throws an Error with the allowed sizes if it does not
  // fit.
  virtual Shape token_shape(const Shape& sample) const = 0;
  // From uint8 [n, height, width, channels] or [n, frames, height, width, channels] to int64
  // [n, ...].
  virtual Array encode(const Array& batch) const = 0;
};

struct CodebookOptions {
  std::int64_t patch = 0;  // side in pixels; 0: computed from the length of the vectors
  std::int64_t channels = 3;
  std::int64_t frames = 1;  // frames per patch, for video
  int threads = 1;
};

// Encodes every patch as the index of the nearest vector of a codebook, an .npy file float32
// [entries, frames * patch * patch * channels] with pixels in [0, 1]. Ties give the lower index.
std::shared_ptr<const TokenEncoder> load_codebook(const std::filesystem::path& path,
                                                  const CodebookOptions& options = {});

}  // namespace millrace
