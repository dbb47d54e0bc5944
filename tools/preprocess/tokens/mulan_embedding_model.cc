#include "tools/preprocess/tokens/mulan_embedding_model.h"

#include "tools/preprocess/tokens/embedding_model.h"
#include "tools/preprocess/tokens/model_weights.h"
#include "tools/preprocess/tokens/weights_hash.h"

#include <millrace/training/checkpoint/checkpoint.h>
#include <millrace/training/checkpoint/tensors.h>
#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/module/module_tensors.h>
#include <millrace/training/models/mulan/mulan.h>

#include <algorithm>

#include <ATen/Parallel.h>

namespace millrace {

namespace {

// From now on every operator called by this thread runs on this thread only.
void use_one_thread() {
  thread_local const bool done = [] {
    at::init_num_threads();
    return true;
  }();
  static_cast<void>(done);
}

class MulanEmbeddings : public EmbeddingModel {
 public:
  MulanEmbeddings(const Value& saved, const TokenModelOptions& options)
      : model_(
            MulanConfig::from_json(model_configuration(saved, options, MulanConfig{}.to_json()))) {
    configuration_ = model_->config().to_json();
    copy_tensors(model_weights(saved, options), state_tensors(*model_), options.model.string());
    hash_ = weights_hash(state_tensors(*model_), configuration_);
    model_->eval();
    if (const Value* data = saved.as_dict().find("data"); data != nullptr && data->is<Dict>()) {
      sample_rate_hz_ = static_cast<int>((*data)["sample_rate"].as_int());
      samples_ = (*data)["data_max_length"].as_int();
    }
  }

  std::string name() const override { return "MuLaN"; }
  std::string hash() const override { return hash_; }
  std::string configuration() const override { return configuration_; }
  std::int64_t dim() const override { return model_->config().dim_latent; }
  int sample_rate_hz() const override { return sample_rate_hz_; }
  std::int64_t samples() const override { return samples_; }
  std::int64_t fewest_samples() const override { return model_->config().audio.fewest_samples(); }
  std::int64_t vocabulary() const override { return model_->config().text.num_tokens; }
  std::int64_t max_tokens() const override { return model_->config().text.max_seq_len; }

  void embed_sound(std::span<const float> sound, std::span<float> place) const override {
    use_one_thread();
    const c10::InferenceMode no_gradients;
    const torch::Tensor row = torch::from_blob(const_cast<float*>(sound.data()),
                                               {1, static_cast<std::int64_t>(sound.size())});
    put(Mulan(model_)->audio_latents(row), place);
  }

  void embed_text(std::span<const std::int32_t> tokens, std::span<float> place) const override {
    use_one_thread();
    const c10::InferenceMode no_gradients;
    const std::vector<std::int64_t> ids(tokens.begin(), tokens.end());
    put(Mulan(model_)->text_latents(torch::tensor(ids, torch::kInt64).unsqueeze(0)), place);
  }

 private:
  static void put(const torch::Tensor& latents, std::span<float> place) {
    const torch::Tensor dense = latents.contiguous();
    std::copy_n(dense.const_data_ptr<float>(), place.size(), place.data());
  }

  Mulan model_;
  std::string hash_, configuration_;
  int sample_rate_hz_ = 0;
  std::int64_t samples_ = 0;
};

}  // namespace

std::shared_ptr<const TokenModel> open_mulan(const Value& saved, const TokenModelOptions& options) {
  return std::make_shared<MulanEmbeddings>(saved, options);
}

}  // namespace millrace
