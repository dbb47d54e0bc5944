// A trained model as a stage of `preprocess tokens`. What runs it links LibTorch and is a library
// of its own, millrace_tokenizers, which is opened when a model is asked for.
#pragma once

#include <millrace/datasets/tokens/token_encoder.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace millrace {

struct TokenModelOptions {
  std::filesystem::path model;  // a checkpoint or weights, of a trainer here or in Python
  // Its constructor arguments, as TOML or JSON. Empty: what the model's file says, or config.toml
  // beside it.
  std::filesystem::path config{};
  std::string weights{};  // "ema", "model", or empty: the moving average if there is one
};

// Pictures and clips.
class PictureTokens : public TokenEncoder {
 public:
  virtual std::int64_t channels() const = 0;
  // The only side of pictures that it takes; 0: any that token_shape() takes.
  virtual std::int64_t side() const = 0;
  virtual bool takes_clips() const = 0;
};

// Meshes, which differ in length.
class MeshTokens {
 public:
  virtual ~MeshTokens() = default;
  virtual std::int64_t codes_of_face() const = 0;
  // Vertices [n, 3], faces [m, 3] and the pairs of faces that touch, [pairs, 2], to codes,
  // int64 [m * codes_of_face()]. Runs on the thread that calls it, so that nothing else decides
  // them.
  virtual Array encode(std::span<const float> vertices, std::span<const std::int64_t> faces,
                       std::span<const std::int64_t> face_edges) const = 0;
};

class EmbeddingModel;  // of sounds and texts, in embedding_model.h

// Thread-safe: nothing changes once it is made.
class TokenModel {
 public:
  virtual ~TokenModel() = default;
  virtual std::string name() const = 0;
  // Of everything that decides what it gives: caches record it.
  virtual std::string hash() const = 0;
  // All tokens that it gives, or of texts that it takes, are below this.
  virtual std::int64_t vocabulary() const = 0;
  // The arguments that decide what it gives, as JSON.
  virtual std::string configuration() const = 0;

  // What it takes: one of these, which lives as long as the model. The others are null.
  virtual const PictureTokens* pictures() const { return nullptr; }
  virtual const MeshTokens* meshes() const { return nullptr; }
  virtual const EmbeddingModel* embeddings() const { return nullptr; }
};

// Throws an Error if the library is not there, or the file is damaged, holds something else or does
// not fit the configuration.
std::shared_ptr<const TokenModel> open_token_model(const TokenModelOptions& options);

// What open_token_model() calls in the library, and its name there.
using OpenTokenModel = void(const TokenModelOptions& options,
                            std::shared_ptr<const TokenModel>& model);
constexpr const char* open_token_model_name = "millrace_open_token_model";

}  // namespace millrace
