// The VQGAN-VAE of Muse, as muse-maskgit-pytorch 0.3.5 has it: pictures to codes and back, trained
// against a discriminator. Parameter names, defaults and arithmetic are the package's.
//
//   Vqgan model(VqganConfig{.dim = 64, .layers = 3, .codebook_size = 1024});
//   GeneratorLoss loss = model->generator_loss(images);      // [batch, 3, 128, 128] in [0, 1]
//   loss.backward();
//   torch::Tensor fake_or_real = model->discriminator_loss(images, {.gradient_penalty = true});
#pragma once

#include <millrace/training/models/vqgan_config.h>

#include <functional>
#include <memory>

#include <torch/nn/module.h>

namespace millrace {

class EncoderDecoderImpl;
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

class VqganImpl : public torch::nn::Module {
 public:
  explicit VqganImpl(VqganConfig config);

  const VqganConfig& config() const { return config_; }
  // Without one there is no perceptual loss, and the adversarial loss is weighed against the
  // reconstruction instead.
  void set_perceptual_net(PerceptualNet net) { perceptual_net_ = std::move(net); }
  void set_draws(std::shared_ptr<Draws> draws);
  // Codebook statistics are then over all ranks.
  void set_ranks(const CodebookRanks& ranks);

  // Throws an Error that names the size if the model cannot take such pictures.
  void check_pictures(const torch::Tensor& pictures) const;
  Quantized encode(const torch::Tensor& pictures);
  torch::Tensor decode(const torch::Tensor& features);
  torch::Tensor decode_indices(const torch::Tensor& indices);
  torch::Tensor reconstruct(const torch::Tensor& pictures);
  torch::Tensor reconstruction_loss(const torch::Tensor& fake, const torch::Tensor& real) const;
  torch::Tensor perceptual_loss(const torch::Tensor& fake, const torch::Tensor& real) const;
  torch::Tensor adversarial_loss(const torch::Tensor& pictures);

  GeneratorLoss generator_loss(const torch::Tensor& pictures, const GeneratorOptions& options = {});
  // A scalar with a graph that reaches the discriminator alone.
  torch::Tensor discriminator_loss(const torch::Tensor& pictures,
                                   const DiscriminatorOptions& options = {});

  bool has_discriminator() const { return discriminator_ != nullptr; }
  std::vector<torch::Tensor> generator_parameters() const;
  std::vector<torch::Tensor> discriminator_parameters() const;

 private:
  // One graph of everything, propagated as a whole.
  GeneratorLoss generator_loss_as_in_python(const torch::Tensor& pictures,
                                            const GeneratorOptions& options);

  VqganConfig config_;
  std::shared_ptr<EncoderDecoderImpl> encoder_decoder_;
  Lfq lfq_{nullptr};
  VectorQuantizer vq_{nullptr};
  std::shared_ptr<DiscriminatorImpl> discriminator_;
  PerceptualNet perceptual_net_;
};
TORCH_MODULE(Vqgan);

}  // namespace millrace
