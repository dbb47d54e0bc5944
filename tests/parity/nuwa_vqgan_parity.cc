#include "tests/parity/load_weights.h"
#include "tests/parity/models.h"
#include "tests/parity/perceptual_net.h"
#include "tests/parity/vae_steps.h"

#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/module/module_tensors.h>
#include <millrace/training/models/nuwa/nuwa_vqgan.h>

namespace millrace {

namespace {

void check_losses(const Fixture& fixture, Report& report, NuwaVqganImpl& model, bool as_in_python) {
  const std::string as = as_in_python ? "" : " as trained";
  const torch::Tensor pictures = fixture.tensor("input/img");
  load_weights(fixture, model, "vgg.");
  model.train();
  model.zero_grad();
  GeneratorLoss loss = model.generator_loss(
      pictures, {.discriminator_gradients = true, .as_in_python = as_in_python});
  // Without a discriminator the package omits the quantizer's loss. Millrace does not, so there is
  // nothing to compare.
  if (as_in_python || loss.adversarial.defined()) {
    report.loss("gen" + as, loss.total, fixture.tensor("loss/gen"));
    report.part(fixture, "gen.recon", loss.reconstruction);
    report.part(fixture, "gen.perceptual", loss.perceptual);
    report.part(fixture, "gen.gen", loss.adversarial);
    report.output("gen.recon", loss.pictures, fixture.tensor("output/gen.recon"));
    loss.backward();
    report.gradients("gen" + as, gradients_of(model), fixture.with("grad/gen/"), !as_in_python);
  }
  for (const std::string tag : {"discr", "discr_penalty"}) {
    if (!fixture.has("loss/" + tag)) continue;
    model.zero_grad();
    const torch::Tensor discr = model.discriminator_loss(
        pictures, {.gradient_penalty = tag == "discr_penalty", .as_in_python = as_in_python});
    report.loss(tag + as, discr, fixture.tensor("loss/" + tag));
    discr.backward();
    report.gradients(tag + as, gradients_of(model), fixture.with("grad/" + tag + "/"),
                     !as_in_python);
  }
  if (!as_in_python) return;
  NamedTensors ours, wanted = fixture.with("buffer_after/");
  for (const auto& [name, tensor] : state_tensors(model)) {
    if (fixture.has("buffer_after/" + name)) ours.emplace_back(name, tensor);
  }
  if (!wanted.empty()) report.tensors("buffers after", ours, wanted);
}

}  // namespace

void check_nuwa_vqgan(const Fixture& fixture, Report& report) {
  NuwaVqgan model(NuwaVqganConfig::from_json(fixture.config()));
  model->set_perceptual_net(perceptual_net(fixture, "param/vgg."));
  check_losses(fixture, report, *model, true);
  check_losses(fixture, report, *model, false);
  load_weights(fixture, *model, "vgg.");
  const torch::Tensor video = fixture.tensor("input/video");
  const torch::Tensor codes = model->get_video_indices(video);
  report.output("codes", codes, fixture.tensor("output/codes"));
  if (fixture.has("output/again")) {  // the package supports decoding for some sizes only
    report.output("again", model->codebook_indices_to_video(codes.flatten(1)),
                  fixture.tensor("output/again"));
  }
  load_weights(fixture, *model, "vgg.");
  check_vae_steps(fixture, report, *model, {});
}

}  // namespace millrace
