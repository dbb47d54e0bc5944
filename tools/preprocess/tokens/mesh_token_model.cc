#include "tools/preprocess/tokens/mesh_token_model.h"

#include "tools/preprocess/tokens/model_weights.h"

#include <millrace/pipeline/base/error.h>
#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/mesh_autoencoder/mesh_autoencoder.h>

#include <cstring>

#include <ATen/Parallel.h>

namespace millrace {

namespace {

class MeshTokenModel : public TokenModel, public MeshTokens {
 public:
  MeshTokenModel(const Value& saved, const TokenModelOptions& options)
      : model_(MeshAutoencoderConfig::from_json(
            model_configuration(saved, options, MeshAutoencoderConfig{}.to_json()))) {
    if (model_->config().quads) {
      throw Error("is a model of quads; files are read as triangles")
          .at(options.model.string())
          .kind(ErrorKind::usage);
    }
    configuration_ = model_->config().to_json();
    hash_ = load_parts(model_weights(saved, options), *model_,
                       {"coor_embed.", "angle_embed.", "area_embed.", "normal_embed.",
                        "project_in.", "init_sage_conv.", "init_encoder_act_and_norm.", "encoders.",
                        "encoder_attn_blocks.", "project_dim_codebook.", "quantizer."},
                       configuration_, options.model);
    model_->eval();
  }

  std::string name() const override { return "mesh autoencoder"; }
  std::string hash() const override { return hash_; }
  std::int64_t vocabulary() const override { return model_->config().codebook_size; }
  std::string configuration() const override { return configuration_; }
  const MeshTokens* meshes() const override { return this; }
  std::int64_t codes_of_face() const override {
    return model_->config().corners() * model_->config().num_quantizers;
  }

  Array encode(std::span<const float> vertices, std::span<const std::int64_t> faces,
               std::span<const std::int64_t> face_edges) const override {
    at::init_num_threads();  // every operator runs on this thread only
    const c10::InferenceMode no_gradients;
    auto rows = [](const auto& values, std::int64_t width, c10::ScalarType type) {
      auto* data = const_cast<void*>(static_cast<const void*>(values.data()));
      return torch::from_blob(data, {1, static_cast<std::int64_t>(values.size()) / width, width},
                              type);
    };
    MeshAutoencoder model = model_;  // shares the same module, whose methods are not const
    const torch::Tensor found = model
                                    ->codes_of({.vertices = rows(vertices, 3, torch::kFloat32),
                                                .faces = rows(faces, 3, torch::kInt64),
                                                .face_edges = rows(face_edges, 2, torch::kInt64)})
                                    .contiguous();
    Array codes = Array::empty(DType::int64, {found.numel()});
    std::memcpy(codes.data(), found.const_data_ptr(), codes.bytes());
    return codes;
  }

 private:
  MeshAutoencoder model_;
  std::string hash_, configuration_;
};

}  // namespace

std::shared_ptr<const TokenModel> open_mesh_tokens(const Value& saved,
                                                   const TokenModelOptions& options) {
  return std::make_shared<MeshTokenModel>(saved, options);
}

}  // namespace millrace
