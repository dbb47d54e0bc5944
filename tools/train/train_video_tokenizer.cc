// Trains the video tokenizer of MAGVIT2 on a folder of clips or pictures.
#include "tools/train/video_tokenizer_options.h"

#include <string>

namespace millrace {
namespace {

constexpr const char* examples = R"(
Examples:
  train_video_tokenizer clips --image-size 128 --codebook-size 1024 --batch-size 4 \
      --num-train-steps 100000 --layers residual compress_space:128 residual compress_time:256
  train_video_tokenizer --config run.toml                            # all of it in a file
  train_video_tokenizer --config results/config.toml --resume        # go on where it was stopped
  train_video_tokenizer photos --dataset-type images --image-size 64 --codebook-size 1024 ...
  torchrun --no-python --nproc-per-node 2 train_video_tokenizer clips --image-size 128 ...

Layers, as in Python or as words; in a file:
  layers = ["residual", ["compress_space", 128], ["consecutive_residual", 2], "attend_space",
            "linear_attend_space", "gateloop_time", ["compress_time", 256], "attend_time"]
Each compress_space halves the sides, each compress_time the frames after the first.

What it leaves behind:
  results/sampled.<n>.gif           a clip of the validation set beside its reconstruction, by the
                                    moving average; n counts --validate-every-step
  results/metrics.jsonl, events.out.*  what was logged; tensorboard --logdir results
  results/config.toml               every option, for --config
  results/errors.jsonl              files that could not be read
  checkpoints/checkpoint.<n>.pt     all that --resume needs, under the names that the trainer in
                                    Python loads; n counts --checkpoint-every-step
The perceptual loss needs VGG16's weights: in Python,
  torch.save(torchvision.models.vgg16(weights="DEFAULT").state_dict(), "vgg16.pt")
)";

constexpr TrainNames names{.folder = "folder,--dataset-folder",
                           .lr = "--learning-rate",
                           .schedule = "--scheduler",
                           .save_results_every = "--validate-every-step",
                           .save_model_every = nullptr,
                           .checkpoint_every = "--checkpoint-every-step",
                           .checkpoints_folder = "--checkpoints-folder"};

void add_clip_options(CLI::App& app, VideoTokenizerTrainOptions& o) {
  auto add = [&](const char* name, auto& value, const char* text) {
    return declare(app, name, value, text, "Data");
  };
  app.add_option("--image-size", o.model.image_size,
                 "the side of the square that frames are cut to")
      ->required()
      ->group("Data");
  add("--dataset-type", o.dataset_type,
      "videos (mp4 mov avi mkv webm gif), images, or mixed: pictures are clips of one frame")
      ->check(CLI::IsMember({"videos", "images", "mixed"}));
  add("--num-frames", o.num_frames,
      "of a clip: for training a random window, for validation the first one")
      ->check(CLI::PositiveNumber);
  add("--frame-stride", o.frame_stride, "take every n-th frame")->check(CLI::PositiveNumber);
  add("--short-clips", o.short_clips,
      "clips with too few frames: repeat the last, black, loop (what is filled in does not count "
      "in "
      "the loss), or error: leave them out")
      ->check(CLI::IsMember({"repeat", "black", "loop", "error"}));
}

void add_model_options(CLI::App& app, VideoTokenizerTrainOptions& o) {
  auto add = [&](const char* name, auto& value, const char* text) {
    return declare(app, name, value, text, "Model");
  };
  VideoTokenizerConfig& model = o.model;
  add("--layers", o.layers, "of the encoder; the decoder undoes them. See below")->delimiter(',');
  add("--codebook-size", model.codebook_size, "how many codes there are: a power of 2, with lfq");
  add("--num-codebooks", model.num_codebooks, "codes of a place");
  add("--use-fsq", model.use_fsq, "finite scalar quantization instead of lookup-free");
  add("--fsq-levels", model.fsq_levels, "of each of its dimensions, e.g. 8 5 5 5");
  add("--channels", model.channels, "of a frame: 1 is grey, 3 is colour")
      ->check(CLI::IsMember({1, 3}));
  add("--init-dim", model.init_dim, "channels before the first layer");
  add("--max-dim", o.max_dim, "channels grow no further; 0: as they will")
      ->check(CLI::NonNegativeNumber);
  add("--dim-cond", model.dim_cond, "size of the condition of cond_ layers");
  add("--dim-cond-expansion-factor", model.dim_cond_expansion_factor,
      "what those layers are given is so many times larger");
  add("--residual-conv-kernel-size", o.residual_kernel, "of residual layers: one number, or three");
  add("--input-conv-kernel-size", o.input_kernel, "before the first layer: time, height, width");
  add("--output-conv-kernel-size", o.output_kernel, "after the last one");
  add("--pad-mode", model.pad_mode, "of convolutions")
      ->check(CLI::IsMember({"constant", "reflect", "replicate", "circular"}));
  add("--separate-first-frame-encoding", model.separate_first_frame_encoding,
      "the first frame has convolutions of its own");
  add("--attn-dim-head", model.attn_dim_head, "channels of a head of attention");
  add("--attn-heads", model.attn_heads, "how many");
  add("--attn-dropout", model.attn_dropout, "of attention")->check(CLI::Range(0.0, 0.99));
  add("--linear-attn-dim-head", model.linear_attn_dim_head, "of linear attention");
  add("--linear-attn-heads", model.linear_attn_heads, "likewise");
  app.add_option("--weights", o.weights,
                 "start from these: a checkpoint, of here or of the trainer in Python, or a "
                 "state_dict")
      ->type_name("FILE")
      ->group("Model");
  app.add_flag("--activation-checkpointing", o.stage.recompute,
               "layers run again in the backward pass instead of being remembered: long clips in "
               "less memory, a third slower")
      ->group("Model");
}

void add_loss_options(CLI::App& app, VideoTokenizerTrainOptions& o) {
  auto add = [&](const char* name, auto& value, const char* text) {
    return declare(app, name, value, text, "Losses");
  };
  VideoTokenizerConfig& model = o.model;
  add("--max-grad-norm", o.stage.max_grad_norm, "clips the gradients of each network; 0: not")
      ->check(CLI::NonNegativeNumber);
  add("--discr-start-after-step", o.stage.discr_start_after_step,
      "until then without discriminators; their warm-up counts from there")
      ->check(CLI::NonNegativeNumber);
  add("--apply-gradient-penalty-every", o.stage.apply_gradient_penalty_every,
      "steps: the discriminator's gradient penalty")
      ->check(CLI::PositiveNumber);
  add("--num-save-recons", o.stage.num_save_recons, "clips in a sampled.<n>.gif")
      ->check(CLI::PositiveNumber);
  add("--perceptual-loss-weight", model.perceptual_loss_weight, "by VGG16, if it is given");
  add("--quantizer-aux-loss-weight", model.quantizer_aux_loss_weight, "of all that lfq adds");
  add("--lfq-entropy-loss-weight", model.lfq_entropy_loss_weight, "clear choices, and variety");
  add("--lfq-diversity-gamma", model.lfq_diversity_gamma, "of variety among them");
  add("--lfq-commitment-loss-weight", model.lfq_commitment_loss_weight,
      "of features near their code");
  app.add_option("--vgg", o.stage.vgg, "VGG16's weights, for the perceptual loss; else without")
      ->type_name("FILE")
      ->group("Losses");
  app.add_flag("--compat", o.stage.compat,
               "as the package does it, to its multi-scale loss that asks no discriminator")
      ->group("Losses");
}

void add_discriminator_options(CLI::App& app, VideoTokenizerTrainOptions& o) {
  auto add = [&](const char* name, auto& value, const char* text) {
    return declare(app, name, value, text, "Discriminators");
  };
  VideoTokenizerConfig& model = o.model;
  add("--use-gan", model.use_gan, "false: without discriminators");
  add("--adversarial-loss-weight", model.adversarial_loss_weight, "0: without, too");
  app.add_option(
         "--adversarial-weight", o.stage.adversarial_weight,
         "of all discriminators, times the weights of each: beside the perceptual loss that "
         "they are weighed against 1, without --vgg beside the reconstruction 0.1")
      ->check(CLI::NonNegativeNumber)
      ->group("Discriminators");
  add("--grad-penalty-loss-weight", model.grad_penalty_loss_weight, "keeps its slope near 1");
  add("--discr-dim", o.discr.dim, "a quarter of its first channels; 0: the tokenizer's last");
  add("--discr-max-dim", o.discr.max_dim, "its channels grow no further");
  add("--discr-linear-attn-dim-head", o.discr.linear_attn_dim_head, "of its attention");
  add("--discr-linear-attn-heads", o.discr.linear_attn_heads, "likewise");
  add("--discr-ff-mult", o.discr.ff_mult, "of its feed-forward layers");
  add("--discr-antialiased-downsample", o.discr.antialiased_downsample, "blur before halving");
  add("--multiscale-scales", o.multiscale_scales,
      "one more discriminator each, which sees all frames so many times smaller, e.g. 1 2");
  add("--multiscale-dim", o.multiscale.dim, "as --discr-dim; 0: --init-dim");
  add("--multiscale-max-dim", o.multiscale.max_dim, "as --discr-max-dim");
  add("--multiscale-antialiased-downsample", o.multiscale.antialiased_downsample, "likewise");
  add("--multiscale-adversarial-loss-weight", model.multiscale_adversarial_loss_weight,
      "of each; 0: without");
}

}  // namespace
}  // namespace millrace

int main(int argc, char** argv) {
  using namespace millrace;
  CommandLine line("train_video_tokenizer",
                   "Trains the video tokenizer of MAGVIT2 on a folder of clips: an encoder that "
                   "turns a clip into a small block of codes, and a decoder that turns codes into "
                   "a clip.",
                   examples);
  VideoTokenizerTrainOptions options;
  add_train_options(line.app(), options.train, names);
  add_clip_options(line.app(), options);
  add_model_options(line.app(), options);
  add_loss_options(line.app(), options);
  add_discriminator_options(line.app(), options);
  return line.run(argc, argv, [&] {
    return run_trainer("millrace_train_video_tokenizer", line.app(), &options);
  });
}
