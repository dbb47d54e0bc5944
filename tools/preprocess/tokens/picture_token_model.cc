// The entry point of the library millrace_tokenizers, and the models that encode pictures and
// clips.
#include "tools/cli/malloc_tuning.h"
#include "tools/preprocess/tokens/mesh_token_model.h"
#include "tools/preprocess/tokens/model_weights.h"
#include "tools/preprocess/tokens/mulan_embedding_model.h"
#include "tools/preprocess/tokens/token_model.h"
#include "tools/preprocess/tokens/weights_hash.h"

#include <millrace/pipeline/base/error.h>
#include <millrace/training/checkpoint/checkpoint.h>
#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/nuwa/nuwa_vqgan.h>
#include <millrace/training/models/video_tokenizer/video_tokenizer.h>
#include <millrace/training/models/vqgan/vqgan.h>

#include <cstring>
#include <functional>
#include <span>
#include <vector>

#include <ATen/Parallel.h>
#include <c10/util/StringUtil.h>
#include <nlohmann/json.hpp>

namespace millrace {

namespace {

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& why) {
  throw Error(why).at(path.string()).kind(ErrorKind::usage);
}

// Runs samples one by one on the calling thread: the tokens of a sample depend neither on other
// samples nor on the number of threads.
class PictureTokenModel : public TokenModel, public PictureTokens {
 public:
  explicit PictureTokenModel(std::string name) : name_(std::move(name)) {}

  std::string name() const override { return name_; }
  std::string hash() const override { return hash_; }
  std::string configuration() const override { return configuration_; }
  const PictureTokens* pictures() const override { return this; }

  Array encode(const Array& batch) const override {
    at::init_num_threads();  // every operator runs on this thread only
    const std::int64_t count = batch.shape()[0];
    const Shape each(std::span(batch.shape().begin() + 1, batch.shape().end()));
    const Array tokens = Array::empty(DType::int64, token_shape(each).with_front(count));
    for (std::int64_t i = 0; i < count; ++i) encode_one(batch.row(i), tokens.row(i));
    return tokens;
  }

 protected:
  // float32 [1, channels, (frames,) height, width] in [0, 1] to int64.
  virtual torch::Tensor codes_of(const torch::Tensor& pixels) const = 0;

  std::string hash_, configuration_;

 private:
  void encode_one(const Array& sample, const Array& tokens) const {
    const c10::InferenceMode no_gradients;
    const c10::IntArrayRef sizes(sample.shape().begin(), sample.shape().end());
    const torch::Tensor pixels = torch::from_blob(sample.data(), sizes, torch::kUInt8);
    const torch::Tensor first = pixels.movedim(-1, 0).unsqueeze(0).to(torch::kFloat32).contiguous();
    const torch::Tensor codes = codes_of(first.div(255)).to(torch::kInt64).contiguous();
    std::memcpy(tokens.data(), codes.const_data_ptr(), codes.nbytes());
  }

  std::string name_;
};

// [height, width, channels], or with frames first.
struct Picture {
  std::int64_t frames, height, width, channels;

  Picture(const Shape& sample, const PictureTokens& model) {
    const int rank = sample.rank();
    frames = rank == 4 ? sample[0] : 1;
    height = sample[rank - 3], width = sample[rank - 2], channels = sample[rank - 1];
    if (channels == model.channels()) return;
    throw Error(c10::str("the model takes ", model.channels(), " channels; give --channels ",
                         model.channels()))
        .kind(ErrorKind::usage);
  }
};

void check_side(const PictureTokens& model, const Picture& picture) {
  const std::int64_t side = model.side();
  if (picture.height == side && picture.width == side) return;
  throw Error(c10::str("the model takes ", side, "x", side, " pixels, not ", picture.height, "x",
                       picture.width, "; give --size ", side))
      .kind(ErrorKind::usage);
}

class VideoTokenModel : public PictureTokenModel {
 public:
  VideoTokenModel(const Value& saved, const TokenModelOptions& options)
      : PictureTokenModel("video tokenizer") {
    const std::string defaults = VideoTokenizerConfig{}.to_json();
    auto config = VideoTokenizerConfig::from_json(model_configuration(saved, options, defaults));
    if (config.conditional()) {
      refuse(options.model, "is a conditional model: its tokens depend on more than the clip");
    }
    // Tokens need no discriminator: make it as small as possible.
    config.discr_kwargs = {
        .dim = 1, .max_dim = 1, .linear_attn_dim_head = 1, .linear_attn_heads = 1};
    config.multiscale_discrs.clear();
    model_ = VideoTokenizer(config);
    configuration_ = config.to_json();
    hash_ = load_parts(model_weights(saved, options), *model_,
                       {"conv_in.", "conv_in_first_frame.", "encoder_layers.", "quantizers."},
                       configuration_, options.model);
    model_->eval();
    const std::vector<std::int64_t>& levels = config.fsq_levels;
    codes_ = config.codebook_size;
    if (config.use_fsq) {
      codes_ = 1;
      for (std::int64_t level : levels) codes_ *= level;
    }
  }

  std::int64_t vocabulary() const override { return codes_; }
  std::int64_t channels() const override { return model_->config().channels; }
  std::int64_t side() const override { return model_->config().image_size; }
  bool takes_clips() const override { return true; }

  Shape token_shape(const Shape& sample) const override {
    const Picture picture(sample, *this);
    const VideoTokenizerConfig& config = model_->config();
    check_side(*this, picture);
    const std::int64_t factor = config.time_factor(), later = picture.frames - 1;
    if (later % factor != 0) {
      throw Error(c10::str("the model takes 1 frame and a multiple of ", factor, " more, not ",
                           picture.frames, "; give --frames ", later / factor * factor + 1, " or ",
                           (later / factor + 1) * factor + 1))
          .kind(ErrorKind::usage);
    }
    const std::int64_t places = side() / config.space_factor();
    Shape shape{later / factor + 1, places, places};
    if (config.num_codebooks > 1) shape.push_back(config.num_codebooks);
    return shape;
  }

 protected:
  torch::Tensor codes_of(const torch::Tensor& pixels) const override {
    VideoTokenizer model = model_;  // shares the same module, whose methods are not const
    return model->quantize(model->encode(model->as_video(pixels))).indices;
  }

 private:
  VideoTokenizer model_{nullptr};
  std::int64_t codes_ = 0;
};

class VqganTokenModel : public PictureTokenModel {
 public:
  VqganTokenModel(const Value& saved, const TokenModelOptions& options)
      : PictureTokenModel("VQGAN-VAE") {
    const std::string defaults = VqganConfig{}.to_json();
    auto config = VqganConfig::from_json(model_configuration(saved, options, defaults));
    config.use_vgg_and_gan = false;
    model_ = Vqgan(config);
    configuration_ = config.to_json();
    hash_ = load_parts(model_weights(saved, options), *model_, {"enc_dec.encoders.", "quantizer."},
                       configuration_, options.model);
    model_->eval();
    encode_ = model_->packed_encoder();
  }

  std::int64_t vocabulary() const override { return model_->config().codebook_size; }
  std::int64_t channels() const override { return model_->config().channels; }
  std::int64_t side() const override { return 0; }
  bool takes_clips() const override { return false; }

  Shape token_shape(const Shape& sample) const override {
    const Picture picture(sample, *this);
    const VqganConfig& config = model_->config();
    const std::int64_t divisor = config.divisor();
    if (picture.height % divisor != 0 || picture.width % divisor != 0) {
      throw Error(c10::str("the model takes sides that are a multiple of ", divisor, ", not ",
                           picture.height, "x", picture.width))
          .kind(ErrorKind::usage);
    }
    Shape shape{picture.height / divisor, picture.width / divisor};
    const bool lookup_free = config.lookup_free_quantization;
    const std::int64_t books = lookup_free ? config.lfq.num_codebooks : 1;
    if (lookup_free && config.lfq.keep_num_codebooks_dim.value_or(books > 1)) {
      shape.push_back(books);
    }
    return shape;
  }

 protected:
  torch::Tensor codes_of(const torch::Tensor& pixels) const override { return encode_(pixels); }

 private:
  Vqgan model_{nullptr};
  std::function<torch::Tensor(const torch::Tensor&)> encode_;
};

// Encodes all frames of a clip at once: frames are independent of each other.
class NuwaVaeTokenModel : public PictureTokenModel {
 public:
  NuwaVaeTokenModel(const Value& saved, const TokenModelOptions& options)
      : PictureTokenModel("NUWA VAE") {
    const std::string defaults = NuwaVqganConfig{.layer_mults = {1}}.to_json();
    auto config = NuwaVqganConfig::from_json(model_configuration(saved, options, defaults));
    config.use_vgg_and_gan = false;
    model_ = NuwaVqgan(config);
    configuration_ = config.to_json();
    hash_ = load_parts(model_weights(saved, options), *model_, {"encoders.", "vq."}, configuration_,
                       options.model);
    model_->eval();
    encode_ = model_->packed_encoder();
  }

  std::int64_t vocabulary() const override { return model_->config().vq.codebook_size; }
  std::int64_t channels() const override { return model_->config().channels; }
  std::int64_t side() const override { return model_->config().image_size; }
  bool takes_clips() const override { return true; }

  Shape token_shape(const Shape& sample) const override {
    const Picture picture(sample, *this);
    check_side(*this, picture);
    const std::int64_t places = model_->config().fmap_size();
    return sample.rank() == 4 ? Shape{picture.frames, places, places} : Shape{places, places};
  }

 protected:
  torch::Tensor codes_of(const torch::Tensor& pixels) const override {
    return encode_(pixels.dim() == 5 ? pixels[0].transpose(0, 1) : pixels);
  }

 private:
  NuwaVqgan model_{nullptr};
  std::function<torch::Tensor(const torch::Tensor&)> encode_;
};

std::shared_ptr<const TokenModel> open(const TokenModelOptions& options) {
  at::set_num_threads(1);
  tune_malloc();
  const Value saved = read_checkpoint(options.model);
  const Dict weights = model_weights(saved, options);
  check_trained(saved, weights, options.model);
  if (weights.contains("conv_in.conv.weight")) {
    return std::make_shared<VideoTokenModel>(saved, options);
  }
  if (weights.contains("init_sage_conv.lin_l.weight")) return open_mesh_tokens(saved, options);
  if (weights.contains("enc_dec.encoders.0.weight")) {
    return std::make_shared<VqganTokenModel>(saved, options);
  }
  if (weights.contains("encoders.0.weight") && weights.contains("vq._codebook.embed")) {
    return std::make_shared<NuwaVaeTokenModel>(saved, options);
  }
  if (weights.contains("audio_to_latents.weight")) return open_mulan(saved, options);
  std::string found = "nothing";
  for (const auto& [key, value] : weights) {
    if (!key.is<std::string>()) continue;
    found = key.as_string();
    break;
  }
  refuse(options.model,
         "holds no video tokenizer, VQGAN-VAE of Muse or NUWA, mesh autoencoder or MuLaN, but " +
             found + " ...");
}

}  // namespace

}  // namespace millrace

extern "C" __attribute__((visibility("default"))) void millrace_open_token_model(
    const millrace::TokenModelOptions& options,
    std::shared_ptr<const millrace::TokenModel>& model) {
  using namespace millrace;
  try {
    model = open(options);
  } catch (Error& error) {
    if (error.source().empty()) error.at(options.model.string());
    error.kind(ErrorKind::usage);
    throw;
  } catch (const c10::Error& error) {
    refuse(options.model, error.what_without_backtrace());
  }
}
