// What the VQGAN-VAEs of Muse and of NUWA have in common: the losses of an autoencoder of pictures
// that is trained against a discriminator, and beside a perceptual network if there is one.
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

// Pictures [batch, 3, height, width] to features whose distance is the perceptual loss.
using PerceptualNet = std::function<torch::Tensor(const torch::Tensor&)>;

// The generator's loss, ready to be propagated. The discriminator and the perceptual network are
// run backward once, when the loss is made, and only down to the picture: Python runs both twice.
struct GeneratorLoss {
  torch::Tensor total;           // the value, without a graph
  torch::Tensor reconstruction;  // parts of it, likewise
  torch::Tensor perceptual, adversarial, adaptive_weight, quantizer;
  torch::Tensor pictures;  // as reconstructed, without a graph
  // Adds `scale` times the gradients to the parameters. Once.
  void backward(double scale = 1);

  struct Graph {
    std::vector<torch::Tensor> roots;
    std::vector<torch::Tensor> gradients;  // of the total with respect to each root
    // Of the discriminator, if asked for: parameter and gradient.
    std::vector<std::pair<torch::Tensor, torch::Tensor>> discriminator;
  };
  Graph graph;
};

struct GeneratorOptions {
  // Times the adaptive weight of the adversarial loss.
  double adversarial_weight = 1;
  // Also gather the discriminator's gradients, as Python does and throws away.
  bool discriminator_gradients = false;
  // Python's own order of operations: twice as much work behind the picture, but the same numbers
  // to the last bit (and the discriminator's gradients).
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
  // Without one there is no perceptual loss, and the adversarial loss is weighed against the
  // reconstruction instead.
  void set_perceptual_net(PerceptualNet net) { perceptual_net_ = std::move(net); }
  virtual void set_draws(std::shared_ptr<Draws> /*draws*/) {}
  // Codebook statistics are then over all ranks.
  virtual void set_ranks(const CodebookRanks& ranks) = 0;
  // The constructor arguments.
  virtual std::string config_json() const = 0;

  // Throws an Error that names the size if the model cannot take such pictures.
  virtual void check_pictures(const torch::Tensor& pictures) const = 0;
  virtual Quantized encode(const torch::Tensor& pictures) = 0;
  // Pictures to indices, of a model in eval mode that is only asked: quicker than encode() on a
  // CPU, and from several threads at once. What is learnt afterwards does not count.
  virtual std::function<torch::Tensor(const torch::Tensor&)> packed_encoder() const = 0;
  virtual torch::Tensor decode(const torch::Tensor& features) = 0;
  torch::Tensor reconstruct(const torch::Tensor& pictures);
  torch::Tensor reconstruction_loss(const torch::Tensor& fake, const torch::Tensor& real) const;
  torch::Tensor perceptual_loss(const torch::Tensor& fake, const torch::Tensor& real) const;
  torch::Tensor adversarial_loss(const torch::Tensor& pictures);

  GeneratorLoss generator_loss(const torch::Tensor& pictures, const GeneratorOptions& options = {});
  // A scalar with a graph that reaches the discriminator alone.
  torch::Tensor discriminator_loss(const torch::Tensor& pictures,
                                   const DiscriminatorOptions& options = {});

  bool has_discriminator() const { return discriminator_ != nullptr; }
  // All but the discriminator's.
  std::vector<torch::Tensor> generator_parameters() const;
  std::vector<torch::Tensor> discriminator_parameters() const;

 protected:
  // Registers it as "discr". `dims`: of its first layer, and of each that halves the sides.
  void make_discriminator(std::int64_t channels, const std::vector<std::int64_t>& dims);
  // Of the last convolution, whose gradient weighs the losses against each other.
  virtual torch::Tensor last_weight() const = 0;
  // One norm over the other, which may be zero.
  virtual torch::Tensor ratio(const torch::Tensor& norm, const torch::Tensor& other) const = 0;

  PictureLosses losses_{};

 private:
  // One graph of everything, propagated as a whole.
  GeneratorLoss generator_loss_as_in_python(const torch::Tensor& pictures,
                                            const GeneratorOptions& options);

  std::shared_ptr<DiscriminatorImpl> discriminator_;
  PerceptualNet perceptual_net_;
};

}  // namespace millrace
