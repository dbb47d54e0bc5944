// The video tokenizer of MAGVIT2, equal to magvit2-pytorch 0.4.2: encodes videos as codes, decodes
// codes to videos, and is trained against a discriminator of single frames. Parameter names,
// defaults and arithmetic are the package's. A picture is a video of one frame.
//
//   VideoTokenizer model(VideoTokenizerConfig{.image_size = 128, .codebook_size = 1024});
//   VideoGeneratorLoss loss = model->generator_loss(video);     // [batch, 3, 17, 128, 128], 0 to 1
//   loss.backward();
//   VideoDiscriminatorLoss real_or_fake = model->discriminator_loss(video);
//   torch::Tensor codes = model->tokenize(video);               // [batch, frames, height, width]
#pragma once

#include <millrace/training/models/module/random_source.h>
#include <millrace/training/models/quantizers/fsq.h>
#include <millrace/training/models/quantizers/lfq.h>
#include <millrace/training/models/video_tokenizer/video_tokenizer_config.h>
#include <millrace/training/models/vqgan/vqgan.h>

#include <memory>
#include <optional>
#include <vector>

#include <torch/nn/module.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

namespace millrace {

class CausalConv3d;
class VideoDiscriminator;
class VideoLayer;

struct VideoOptions {
  torch::Tensor cond{};  // [batch, dim_cond], for models with conditional layers
  // False if the video continues an earlier one, so that its first frame is not encoded separately.
  bool contains_first_frame = true;
};

struct VideoGeneratorLoss : GeneratorLoss {  // `pictures` is the reconstructed video
  // Parts of the quantizer's loss; 0 if the quantizer has none.
  torch::Tensor per_sample_entropy, batch_entropy, commitment;
  // One value per multi-scale discriminator.
  std::vector<torch::Tensor> multiscale, multiscale_weights;
};

struct VideoDiscriminatorLoss {
  torch::Tensor total;  // its graph reaches only the discriminators
  torch::Tensor hinge, gradient_penalty;
  std::vector<torch::Tensor> multiscale;
};

struct VideoLossOptions {
  VideoOptions video{};
  // Number of valid frames of each video, int64 [batch]; the frames after them are padding and are
  // ignored. Each video then has the same weight, whatever its length. Undefined: all frames are
  // valid.
  torch::Tensor valid_frames{};
  // Also compute the discriminator's gradients of the generator's loss, which the Python trainer
  // computes and discards.
  bool discriminator_gradients = false;
  // For the discriminator's loss.
  bool gradient_penalty = true;
  // For the generator's loss: false omits the adversarial losses, as if their weight were 0.
  bool adversarial = true;
  // Without a perceptual loss, balance the adversarial losses against the reconstruction loss. The
  // package does not balance them then. Ignored with `compat`.
  bool weigh_against_reconstruction = false;
  // Replace the configured weights.
  std::optional<double> adversarial_loss_weight{}, multiscale_adversarial_loss_weight{};
};

class VideoTokenizerImpl : public torch::nn::Module {
 public:
  explicit VideoTokenizerImpl(VideoTokenizerConfig config);

  const VideoTokenizerConfig& config() const { return config_; }
  // Without a perceptual network there is no perceptual loss.
  void set_perceptual_net(PerceptualNet net) { perceptual_net_ = std::move(net); }
  void set_draws(std::shared_ptr<Draws> draws) { draws_ = std::move(draws); }
  // Gradient checkpointing: layers keep only their inputs and run again in the backward pass. Less
  // memory for about a third more time; the gradients are the same.
  void set_recompute(bool recompute) { recompute_ = recompute; }

  // Convert videos to channels-last, which is faster on a CPU but changes the order of sums.
  // Ignored with `compat`. See Note [channels last].
  void set_channels_last(bool channels_last);

  // Adds a frame dimension to [batch, channels, height, width]; returns videos unchanged. Throws an
  // Error that names the size if the model cannot take it.
  torch::Tensor as_video(const torch::Tensor& pictures, bool contains_first_frame = true) const;
  // Features before the quantizer.
  torch::Tensor encode(const torch::Tensor& video, const VideoOptions& options = {});
  Quantized quantize(const torch::Tensor& features, const torch::Tensor& valid_frames = {});
  torch::Tensor decode(const torch::Tensor& features, const VideoOptions& options = {});
  // `codes`: [batch, frames, height, width], or [batch, all codes].
  torch::Tensor decode_from_code_indices(const torch::Tensor& codes,
                                         const VideoOptions& options = {});
  // Runs in eval mode and without gradients, then restores the mode.
  torch::Tensor tokenize(const torch::Tensor& video, const VideoOptions& options = {});
  torch::Tensor reconstruct(const torch::Tensor& video, const VideoOptions& options = {});
  // Mean squared error of each video over its valid frames, [batch].
  static torch::Tensor difference(const torch::Tensor& fake, const torch::Tensor& real,
                                  const torch::Tensor& valid_frames = {});

  VideoGeneratorLoss generator_loss(const torch::Tensor& video,
                                    const VideoLossOptions& options = {});
  VideoDiscriminatorLoss discriminator_loss(const torch::Tensor& video,
                                            const VideoLossOptions& options = {});

  // In the order of the package's parameters(), because an optimizer's state has this order.
  std::vector<torch::Tensor> generator_parameters() const;
  std::vector<torch::Tensor> discriminator_parameters() const;
  std::vector<torch::Tensor> multiscale_parameters(std::size_t which) const;

 private:
  // Weights of the last convolutions. Adaptive weights are computed from gradients with respect to
  // them.
  std::vector<torch::Tensor> last_weights() const;
  torch::Tensor laid_out(const torch::Tensor& video) const;
  torch::Tensor condition(torch::nn::Linear& stem, const torch::Tensor& cond, std::int64_t batch);
  torch::Tensor run(const std::vector<std::shared_ptr<VideoLayer>>& layers, torch::Tensor x,
                    const torch::Tensor& cond) const;
  // Draws one random frame per video, out of the frames with a weight above 0.
  torch::Tensor draw_frames(const torch::Tensor& video, const torch::Tensor& weights = {});
  torch::Tensor perceptual_loss(const torch::Tensor& fake, const torch::Tensor& real) const;
  // Reference path for `compat`: one graph for all losses, operations in the order of the Python
  // package.
  VideoGeneratorLoss generator_loss_as_in_python(const torch::Tensor& video,
                                                 const VideoLossOptions& options);
  struct Parts;  // intermediate values of the generator's loss
  void add_perceptual(Parts& parts, VideoGeneratorLoss& loss, const VideoLossOptions& options);
  void add_adversarial(Parts& parts, VideoGeneratorLoss& loss, const VideoLossOptions& options);
  void add_multiscale(Parts& parts, VideoGeneratorLoss& loss, const VideoLossOptions& options);

  VideoTokenizerConfig config_;
  std::shared_ptr<CausalConv3d> conv_in_, conv_out_;
  torch::nn::Conv2d conv_in_first_{nullptr}, conv_out_first_{nullptr};
  std::vector<std::shared_ptr<VideoLayer>> encoder_, decoder_;
  torch::nn::Linear encoder_cond_{nullptr}, decoder_cond_{nullptr};
  Lfq lfq_{nullptr};
  Fsq fsq_{nullptr};
  std::shared_ptr<VideoDiscriminator> discriminator_;
  std::vector<std::shared_ptr<VideoDiscriminator>> multiscale_;
  bool recompute_ = false, channels_last_ = false;
  PerceptualNet perceptual_net_;
  std::shared_ptr<Draws> draws_ = std::make_shared<Draws>();
};
TORCH_MODULE(VideoTokenizer);

}  // namespace millrace
