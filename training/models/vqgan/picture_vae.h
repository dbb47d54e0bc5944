// Common base of Muse's and NUWA's VQGAN-VAEs: the losses of an image autoencoder that is trained
// against a discriminator and, optionally, with a perceptual network.
#pragma once

#include <millrace/training/models/module/random_source.h>
#include <millrace/training/models/quantizers/quantizer.h>
#include <millrace/training/models/quantizers/vector_quantizer.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <torch/nn/module.h>

namespace millrace {

class DiscriminatorImpl;

// Maps pictures [batch, 3, height, width] to features; the perceptual loss is the distance of
// features.
using PerceptualNet = std::function<torch::Tensor(const torch::Tensor&)>;

// The generator's loss, ready for backward(). The discriminator and the perceptual network run
// backward once, while the loss is computed, and only down to the picture. The Python package runs
// both backward twice.
struct GeneratorLoss {
  torch::Tensor total;           // detached
  torch::Tensor reconstruction;  // parts of the total, detached
  torch::Tensor perceptual, adversarial, adaptive_weight, quantizer;
  torch::Tensor pictures;  // the reconstruction, detached
  // Adds `scale` times the gradients to the parameters. May be called once.
  void backward(double scale = 1);

  struct Graph {
    std::vector<torch::Tensor> roots;
    std::vector<torch::Tensor> gradients;  // of the total with respect to each root
    // Discriminator parameters and their gradients, if requested.
    std::vector<std::pair<torch::Tensor, torch::Tensor>> discriminator;
  };
  Graph graph;
};

struct GeneratorOptions {
  // Multiplies the adaptive weight of the adversarial loss.
  double adversarial_weight = 1;
  // Also compute the discriminator's gradients, which the Python trainer computes and discards.
  bool discriminator_gradients = false;
  // Reference path: operations in the order of the Python package. The backward pass behind the
  // picture costs twice as much, but results are bit-exact (the discriminator's gradients
  // included).
  bool as_in_python = false;
};

struct DiscriminatorOptions {
  bool gradient_penalty = true;
  double penalty_weight = 10;
  bool as_in_python = false;  // see GeneratorOptions
};

struct PictureLosses {
  bool l2_recon_loss = false;
  bool use_hinge_loss = true;
  bool use_vgg_and_gan = true;
};

class PictureVaeImpl : public torch::nn::Module {
 public:
  // Without a perceptual network there is no perceptual loss, and the adaptive weight balances the
  // adversarial loss against the reconstruction loss instead.
  void set_perceptual_net(PerceptualNet net) { perceptual_net_ = std::move(net); }
  virtual void set_draws(std::shared_ptr<Draws> /*draws*/) {}
  // Codebook statistics are summed over these ranks.
  virtual void set_ranks(const CodebookRanks& ranks) = 0;
  // The constructor arguments.
  virtual std::string config_json() const = 0;

  // Throws an Error that names the size if the model cannot take pictures of this shape.
  virtual void check_pictures(const torch::Tensor& pictures) const = 0;
  virtual Quantized encode(const torch::Tensor& pictures) = 0;
  // Returns a function from pictures to indices, for a model in eval mode. On a CPU it is faster
  // than encode(). It is thread-safe. Later training is not seen.
  virtual std::function<torch::Tensor(const torch::Tensor&)> packed_encoder() const = 0;
  virtual torch::Tensor decode(const torch::Tensor& features) = 0;
  torch::Tensor reconstruct(const torch::Tensor& pictures);
  torch::Tensor reconstruction_loss(const torch::Tensor& fake, const torch::Tensor& real) const;
  torch::Tensor perceptual_loss(const torch::Tensor& fake, const torch::Tensor& real) const;
  torch::Tensor adversarial_loss(const torch::Tensor& pictures);

  GeneratorLoss generator_loss(const torch::Tensor& pictures, const GeneratorOptions& options = {});
  // A scalar whose graph reaches only the discriminator.
  torch::Tensor discriminator_loss(const torch::Tensor& pictures,
                                   const DiscriminatorOptions& options = {});

  bool has_discriminator() const { return discriminator_ != nullptr; }
  // All parameters except the discriminator's.
  std::vector<torch::Tensor> generator_parameters() const;
  std::vector<torch::Tensor> discriminator_parameters() const;

 protected:
  // Registers the discriminator as "discr". `dims`: channels of its first layer and of each
  // downsampling layer.
  void make_discriminator(std::int64_t channels, const std::vector<std::int64_t>& dims);
  // Weight of the last convolution. The adaptive weight is computed from gradients with respect to
  // it.
  virtual torch::Tensor last_weight() const = 0;
  // norm / other; each VAE has its own guard against other == 0.
  virtual torch::Tensor ratio(const torch::Tensor& norm, const torch::Tensor& other) const = 0;

  PictureLosses losses_{};

 private:
  // Reference path: one graph for all losses.
  GeneratorLoss generator_loss_as_in_python(const torch::Tensor& pictures,
                                            const GeneratorOptions& options);

  std::shared_ptr<DiscriminatorImpl> discriminator_;
  PerceptualNet perceptual_net_;
};

}  // namespace millrace
