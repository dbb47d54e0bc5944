#include "tests/parity/load_weights.h"
#include "tests/parity/models.h"
#include "tests/parity/perceptual_net.h"
#include "tests/parity/vae_steps.h"

#include <millrace/pipeline/base/error.h>
#include <millrace/training/checkpoint/checkpoint.h>
#include <millrace/training/checkpoint/tensors.h>
#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/module/module_tensors.h>
#include <millrace/training/models/vqgan/vqgan.h>

namespace millrace {

namespace {

void clear(VqganImpl& model) {
  model.zero_grad(/*set_to_none=*/true);
}

// The order of operations to compare: that of the Python package, or that of training, which runs
// backward through the discriminator and the perceptual network once instead of twice.
enum class Order { as_in_python, as_trained };

class Run {
 public:
  Run(const Fixture& fixture, Report& report, Order order)
      : fixture_(fixture),
        report_(report),
        order_(order),
        model_(VqganConfig::from_json(fixture.config())) {
    model_->set_perceptual_net(perceptual_net(fixture, "param/_vgg."));
    model_->set_draws(draws_);
    load_weights(fixture_, *model_, "_vgg.");
    // A fixture does not say whether it was made in training mode. In eval mode the quantizer has
    // neither a loss nor gradients.
    const bool trained = !fixture.has("loss/quantizer_aux") ||
                         fixture.tensor("loss/quantizer_aux").item<double>() != 0 ||
                         !fixture.with("grad/quantizer_aux/").empty();
    model_->train(trained);
    if (fixture.has("input/img")) pictures_ = fixture.tensor("input/img");
  }

  void generator() {
    if (!fixture_.has("loss/gen")) return;
    clear(*model_);
    const bool as_in_python = order_ == Order::as_in_python;
    GeneratorLoss loss = model_->generator_loss(
        pictures_, {.discriminator_gradients = true, .as_in_python = as_in_python});
    if (!as_in_python) {
      // Without a discriminator the package omits the quantizer's loss. Millrace does not, so there
      // is nothing to compare.
      if (!loss.adversarial.defined()) return loss.backward();
      report_.loss("gen as trained", loss.total, fixture_.tensor("loss/gen"));
      loss.backward();
      report_.gradients("gen as trained", gradients_of(*model_), fixture_.with("grad/gen/"), true);
      return;
    }
    const torch::Tensor fake = loss.pictures;
    report_.loss("gen", loss.total, fixture_.tensor("loss/gen"));
    report_.part(fixture_, "gen.recon", loss.reconstruction);
    report_.part(fixture_, "gen.perceptual", loss.perceptual);
    report_.part(fixture_, "gen.gen", loss.adversarial);
    if (fixture_.has("output/gen.recon")) {
      report_.output("gen.recon", fake, fixture_.tensor("output/gen.recon"));
    }
    loss.backward();
    report_.gradients("gen", gradients_of(*model_), fixture_.with("grad/gen/"));
  }

  void quantizer() {
    if (!fixture_.has("loss/quantizer_aux")) return;
    clear(*model_);
    const Quantized quantized = model_->encode(pictures_);
    // The same in both orders; called only for its random numbers and codes.
    if (order_ == Order::as_trained) return;
    report_.loss("quantizer_aux", quantized.loss, fixture_.tensor("loss/quantizer_aux"));
    if (fixture_.has("output/quantizer_aux.ids")) {
      report_.output("quantizer_aux.ids", quantized.indices,
                     fixture_.tensor("output/quantizer_aux.ids"));
    }
    if (quantized.loss.requires_grad()) quantized.loss.backward();
    report_.gradients("quantizer_aux", gradients_of(*model_), fixture_.with("grad/quantizer_aux/"));
  }

  void discriminator() {
    if (!fixture_.has("loss/discr")) return;
    clear(*model_);
    const bool as_in_python = order_ == Order::as_in_python;
    const std::string name = as_in_python ? "discr" : "discr as trained";
    const torch::Tensor loss =
        model_->discriminator_loss(pictures_, {.as_in_python = as_in_python});
    report_.loss(name, loss, fixture_.tensor("loss/discr"));
    loss.backward();
    report_.gradients(name, gradients_of(*model_), fixture_.with("grad/discr/"), !as_in_python);
  }

  void finish() {
    if (const NamedTensors wanted = fixture_.with("buffer_after/"); !wanted.empty()) {
      NamedTensors ours;
      for (const auto& [name, tensor] : wanted) {
        for (const auto& item : model_->named_buffers()) {
          if (item.key() == name) ours.emplace_back(name, item.value());
        }
      }
      report_.tensors("buffers after", ours, wanted);
    }
    if (draws_->left() > 0)
      report_.failure(std::to_string(draws_->left()) + " recorded random numbers were not used");
  }

  void steps() {
    if (!fixture_.has("step/config")) return;
    load_weights(fixture_, *model_, "_vgg.");
    check_vae_steps(fixture_, report_, *model_, fixture_.draws("step/rand/"));
  }

 private:
  const Fixture& fixture_;
  Report& report_;
  Order order_;
  Vqgan model_;
  std::shared_ptr<Draws> draws_ = fixture_.draws();
  torch::Tensor pictures_;
};

}  // namespace

void check_vqgan(const Fixture& fixture, Report& report) {
  Run run(fixture, report, Order::as_in_python);
  run.generator();
  run.quantizer();
  run.discriminator();
  run.finish();
  run.steps();
  Run trained(fixture, report, Order::as_trained);
  trained.generator();
  trained.quantizer();
  trained.discriminator();
}

}  // namespace millrace
