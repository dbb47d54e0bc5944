// A trained model that makes tokens, for `preprocess tokens`. The implementation links LibTorch and
// is in the library millrace_tokenizers, which is opened when a model is given.
#pragma once

#include <millrace/datasets/tokens/token_encoder.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace millrace {

struct TokenModelOptions {
  std::filesystem::path model;  // checkpoint or weights, of Millrace or of Python
  // File with its constructor arguments, TOML or JSON. Empty: those in the model's file, or in the
  // config.toml beside it.
  std::filesystem::path config{};
  std::string weights{};  // "ema", "model", or empty: the moving average if there is one
};

// Pictures and clips.
class PictureTokens : public TokenEncoder {
 public:
  virtual std::int64_t channels() const = 0;
  // The height and width that it requires; 0: any that token_shape() accepts.
  virtual std::int64_t side() const = 0;
  virtual bool takes_clips() const = 0;
};

// Meshes, which differ in length.
class MeshTokens {
 public:
  virtual ~MeshTokens() = default;
  virtual std::int64_t codes_of_face() const = 0;
  // Encodes vertices [n, 3], faces [m, 3] and pairs of adjacent faces [pairs, 2] to codes, int64
  // [m * codes_of_face()]. Runs on the calling thread only, so that the codes depend on nothing
  // else.
  virtual Array encode(std::span<const float> vertices, std::span<const std::int64_t> faces,
                       std::span<const std::int64_t> face_edges) const = 0;
};

class EmbeddingModel;  // of sounds and texts, in embedding_model.h

// Thread-safe: immutable after construction.
class TokenModel {
 public:
  virtual ~TokenModel() = default;
  virtual std::string name() const = 0;
  // Hash of the weights and the configuration; caches record it.
  virtual std::string hash() const = 0;
  // Number of different tokens that it makes, or that it accepts in texts.
  virtual std::int64_t vocabulary() const = 0;
  // Its constructor arguments as JSON.
  virtual std::string configuration() const = 0;

  // Exactly one of these is not null: the kind of media it takes. Owned by the model.
  virtual const PictureTokens* pictures() const { return nullptr; }
  virtual const MeshTokens* meshes() const { return nullptr; }
  virtual const EmbeddingModel* embeddings() const { return nullptr; }
};

// Throws an Error if the library is missing, or if the file is damaged, holds another kind of model
// or does not fit the configuration.
std::shared_ptr<const TokenModel> open_token_model(const TokenModelOptions& options);

// The function of the library that open_token_model() calls, and its name.
using OpenTokenModel = void(const TokenModelOptions& options,
                            std::shared_ptr<const TokenModel>& model);
constexpr const char* open_token_model_name = "millrace_open_token_model";

}  // namespace millrace
