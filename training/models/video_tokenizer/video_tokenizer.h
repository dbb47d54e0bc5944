// The video tokenizer of MAGVIT2, as magvit2-pytorch 0.4.2 has it: videos to codes and back,
// trained against a discriminator of single frames. Parameter names, defaults and arithmetic are
// the package's. A picture is a video of one frame.
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
  torch::Tensor cond{};  // [batch, dim_cond], for a model with conditional layers
  // A video that goes on from an earlier one: its first frame is none of its own.
  bool contains_first_frame = true;
};

struct VideoGeneratorLoss : GeneratorLoss {  // `pictures`: the video as reconstructed
  // Parts of the quantizer's loss, 0 where it has none.
  torch::Tensor per_sample_entropy, batch_entropy, commitment;
  // One of each multi-scale discriminator.
  std::vector<torch::Tensor> multiscale, multiscale_weights;
};

struct VideoDiscriminatorLoss {
  torch::Tensor total;  // with a graph that reaches the discriminators alone
  torch::Tensor hinge, gradient_penalty;
  std::vector<torch::Tensor> multiscale;
};

struct VideoLossOptions {
  VideoOptions video{};
  // How many frames of each video are its own, int64 [batch]; those behind them are filling, and do
  // not count. Every video counts the same then, whatever its length. Undefined: all.
  torch::Tensor valid_frames{};
  // Also gather the discriminator's gradients of the generator's loss, as Python does and throws
  // away.
  bool discriminator_gradients = false;
  // In the discriminator's loss.
  bool gradient_penalty = true;
  // In the generator's loss: false leaves the discriminators out, as if their weight were 0.
  bool adversarial = true;
  // Without a perceptual loss, weigh the adversarial ones against the reconstruction's, and not at
  // all as in the package. Not with `compat`.
  bool weigh_against_reconstruction = false;
  // In place of the configured weights.
  std::optional<double> adversarial_loss_weight{}, multiscale_adversarial_loss_weight{};
};

class VideoTokenizerImpl : public torch::nn::Module {
 public:
  explicit VideoTokenizerImpl(VideoTokenizerConfig config);

  const VideoTokenizerConfig& config() const { return config_; }
  // Without one there is no perceptual loss, and nothing to weigh the adversarial loss against.
  void set_perceptual_net(PerceptualNet net) { perceptual_net_ = std::move(net); }
  void set_draws(std::shared_ptr<Draws> draws) { draws_ = std::move(draws); }
  // Layers keep only what they are given, and run again in the backward pass: less memory for a
  // third more time, and the same gradients.
  void set_recompute(bool recompute) { recompute_ = recompute; }

  // Videos lie in memory with their channels last, or as they are given. The same sums in another
  // order; on a CPU sooner. Not with `compat`.
  void set_channels_last(bool channels_last);

  // [batch, channels, height, width] as a video of one frame; a video as it is. Throws an Error
  // that names the size if the model cannot take it.
  torch::Tensor as_video(const torch::Tensor& pictures, bool contains_first_frame = true) const;
  // Features before the quantizer.
  torch::Tensor encode(const torch::Tensor& video, const VideoOptions& options = {});
  Quantized quantize(const torch::Tensor& features, const torch::Tensor& valid_frames = {});
  torch::Tensor decode(const torch::Tensor& features, const VideoOptions& options = {});
  // `codes`: [batch, frames, height, width], or flat for each video.
  torch::Tensor decode_from_code_indices(const torch::Tensor& codes,
                                         const VideoOptions& options = {});
  // In eval mode and without gradients; the mode is put back.
  torch::Tensor tokenize(const torch::Tensor& video, const VideoOptions& options = {});
  torch::Tensor reconstruct(const torch::Tensor& video, const VideoOptions& options = {});
  // The mean square difference of each video over its own frames (see VideoLossOptions): [batch].
  static torch::Tensor difference(const torch::Tensor& fake, const torch::Tensor& real,
                                  const torch::Tensor& valid_frames = {});

  VideoGeneratorLoss generator_loss(const torch::Tensor& video,
                                    const VideoLossOptions& options = {});
  VideoDiscriminatorLoss discriminator_loss(const torch::Tensor& video,
                                            const VideoLossOptions& options = {});

  // In the order of the package's parameters(), which an optimizer's state follows.
  std::vector<torch::Tensor> generator_parameters() const;
  std::vector<torch::Tensor> discriminator_parameters() const;
  std::vector<torch::Tensor> multiscale_parameters(std::size_t which) const;

 private:
  // What the adversarial losses are weighed by: of the last convolutions.
  std::vector<torch::Tensor> last_weights() const;
  torch::Tensor laid_out(const torch::Tensor& video) const;
  torch::Tensor condition(torch::nn::Linear& stem, const torch::Tensor& cond, std::int64_t batch);
  torch::Tensor run(const std::vector<std::shared_ptr<VideoLayer>>& layers, torch::Tensor x,
                    const torch::Tensor& cond) const;
  // One frame of each video, drawn at random from those that have a weight.
  torch::Tensor draw_frames(const torch::Tensor& video, const torch::Tensor& weights = {});
  torch::Tensor perceptual_loss(const torch::Tensor& fake, const torch::Tensor& real) const;
  // One graph of everything, propagated as a whole: Python's own order of operations, for `compat`.
  VideoGeneratorLoss generator_loss_as_in_python(const torch::Tensor& video,
                                                 const VideoLossOptions& options);
  struct Parts;  // the generator's loss in the making
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
