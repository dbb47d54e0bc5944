// train_video_tokenizer: trains the video tokenizer of MAGVIT2 on a folder of clips or pictures.
#include "tools/train/video_tokenizer_options.h"

#include <string>

namespace millrace {
namespace {

constexpr const char* examples = R"(
Examples:
  train_video_tokenizer clips --image-size 128 --codebook-size 1024 --batch-size 4 \
      --num-train-steps 100000 --layers residual compress_space:128 residual compress_time:256
  train_video_tokenizer --config run.toml                            # all options in a file
  train_video_tokenizer --config results/config.toml --resume        # continue where it was stopped
  train_video_tokenizer photos --dataset-type images --image-size 64 --codebook-size 1024 ...
  torchrun --no-python --nproc-per-node 2 train_video_tokenizer clips --image-size 128 ...

Layers, as in Python or as words; in a file:
  layers = ["residual", ["compress_space", 128], ["consecutive_residual", 2], "attend_space",
            "linear_attend_space", "gateloop_time", ["compress_time", 256], "attend_time"]
Each compress_space halves the sides, each compress_time the frames after the first.

Files it writes:
  results/sampled.<n>.gif           a clip of the validation set and its reconstruction by the
                                    moving average, side by side; n counts --validate-every-step
  results/metrics.jsonl, events.out.*  metrics; tensorboard --logdir results
  results/config.toml               every option, for --config
  results/errors.jsonl              files that could not be read
  checkpoints/checkpoint.<n>.pt     everything that --resume needs, under the names that the trainer in
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

void add_clip_options(const Options& options, VideoTokenizerTrainOptions& o) {
  Options data = options.group("Data");
  data.add("--image-size", o.model.image_size,
           "height and width of the square that frames are resized and cropped to, in pixels")
      .required();
  data.add("--dataset-type", o.dataset_type,
           "kind of files to train on: videos (mp4 mov avi mkv webm gif), images, or mixed; a "
           "picture is a clip of one frame")
      .one_of({"videos", "images", "mixed"});
  data.add("--num-frames", o.num_frames,
           "number of frames of a clip: a random window in training, the first in validation")
      .positive();
  data.add("--frame-stride", o.frame_stride, "take every n-th frame of a clip").positive();
  data.add("--short-clips", o.short_clips,
           "fill clips with too few frames: repeat the last, black, loop (filled frames do not "
           "count in the loss); or error: leave them out")
      .one_of({"repeat", "black", "loop", "error"});
}

void add_model_options(const Options& options, VideoTokenizerTrainOptions& o) {
  Options group = options.group("Model");
  VideoTokenizerConfig& model = o.model;
  group.add("--layers", o.layers, "layers of the encoder, mirrored by the decoder; see below")
      .separator(',');
  group.add("--codebook-size", model.codebook_size,
            "number of codes in the codebook; a power of 2 without --use-fsq");
  group.add("--num-codebooks", model.num_codebooks,
            "number of codebooks: codes per position of the feature map");
  group.add("--use-fsq", model.use_fsq,
            "finite scalar quantization (FSQ) instead of lookup-free (LFQ)");
  group.add("--fsq-levels", model.fsq_levels,
            "number of FSQ levels of each dimension, e.g. 8 5 5 5");
  group.add("--channels", model.channels, "number of channels of a frame: 1 is grey, 3 is RGB")
      .one_of({1, 3});
  group.add("--init-dim", model.init_dim, "number of channels before the first layer");
  group.add("--max-dim", o.max_dim, "maximum number of channels of a layer; 0: no limit")
      .non_negative();
  group.add("--dim-cond", model.dim_cond,
            "number of channels of the condition of cond_ layers; 0: none");
  group.add("--dim-cond-expansion-factor", model.dim_cond_expansion_factor,
            "factor by which the condition is widened before it reaches cond_ layers");
  group.add("--residual-conv-kernel-size", o.residual_kernel,
            "kernel size of residual layers: one number, or time, height and width");
  group.add("--input-conv-kernel-size", o.input_kernel,
            "kernel size of the first convolution: one number, or time, height and width");
  group.add("--output-conv-kernel-size", o.output_kernel,
            "kernel size of the last convolution: one number, or time, height and width");
  group.add("--pad-mode", model.pad_mode, "padding mode of the convolutions")
      .one_of({"constant", "reflect", "replicate", "circular"});
  group.add("--separate-first-frame-encoding", model.separate_first_frame_encoding,
            "encode the first frame with convolutions of its own");
  group.add("--attn-dim-head", model.attn_dim_head, "number of channels per attention head");
  group.add("--attn-heads", model.attn_heads, "number of attention heads per layer");
  group.add("--attn-dropout", model.attn_dropout, "dropout probability in attention layers")
      .range(0.0, 0.99);
  group.add("--linear-attn-dim-head", model.linear_attn_dim_head,
            "number of channels per head of linear attention");
  group.add("--linear-attn-heads", model.linear_attn_heads, "number of heads of linear attention");
  group
      .add("--weights", o.weights,
           "weights to start from: a checkpoint of Millrace or of the Python trainer, or a "
           "state_dict")
      .type_name("FILE");
  group.flag("--activation-checkpointing", o.stage.recompute,
             "recompute layers in the backward pass instead of storing activations: less memory, "
             "a third slower");
}

void add_loss_options(const Options& options, VideoTokenizerTrainOptions& o) {
  Options losses = options.group("Losses");
  VideoTokenizerConfig& model = o.model;
  losses
      .add("--max-grad-norm", o.stage.max_grad_norm,
           "maximum gradient norm of each network; 0: no clipping")
      .non_negative();
  losses
      .add("--discr-start-after-step", o.stage.discr_start_after_step,
           "number of steps without discriminators; their warm-up starts afterwards")
      .non_negative();
  losses
      .add("--apply-gradient-penalty-every", o.stage.apply_gradient_penalty_every,
           "number of steps between gradient penalties of the discriminator")
      .positive();
  losses.add("--num-save-recons", o.stage.num_save_recons, "number of clips in a sampled.<n>.gif")
      .positive();
  losses.add("--perceptual-loss-weight", model.perceptual_loss_weight,
             "weight of the perceptual loss; needs --vgg");
  losses.add("--quantizer-aux-loss-weight", model.quantizer_aux_loss_weight,
             "weight of the sum of all LFQ losses");
  losses.add("--lfq-entropy-loss-weight", model.lfq_entropy_loss_weight,
             "weight of the entropy loss: certain choices, evenly used codes");
  losses.add("--lfq-diversity-gamma", model.lfq_diversity_gamma,
             "weight of even code usage within the entropy loss");
  losses.add("--lfq-commitment-loss-weight", model.lfq_commitment_loss_weight,
             "weight of the commitment loss");
  losses
      .add("--vgg", o.stage.vgg,
           "weights of VGG16 for the perceptual loss; default: no perceptual loss")
      .type_name("FILE");
  losses.flag("--compat", o.stage.compat,
              "compute as the Python package does, including its multi-scale loss without "
              "discriminators; slower");
}

void add_discriminator_options(const Options& options, VideoTokenizerTrainOptions& o) {
  Options group = options.group("Discriminators");
  VideoTokenizerConfig& model = o.model;
  group.add("--use-gan", model.use_gan, "train with discriminators; false: without");
  group.add("--adversarial-loss-weight", model.adversarial_loss_weight,
            "weight of the first discriminator's adversarial loss; 0: no discriminator");
  group
      .add("--adversarial-weight", o.stage.adversarial_weight,
           "common factor of all adversarial losses, relative to the perceptual loss, default 1; "
           "without --vgg relative to the reconstruction loss, default 0.1")
      .non_negative();
  group.add("--grad-penalty-loss-weight", model.grad_penalty_loss_weight,
            "weight of the gradient penalty, which keeps the gradient norm near 1");
  group.add("--discr-dim", o.discr.dim,
            "quarter of the discriminator's first channels; 0: the tokenizer's last channels");
  group.add("--discr-max-dim", o.discr.max_dim, "maximum number of the discriminator's channels");
  group.add("--discr-linear-attn-dim-head", o.discr.linear_attn_dim_head,
            "number of channels per attention head of the discriminator");
  group.add("--discr-linear-attn-heads", o.discr.linear_attn_heads,
            "number of attention heads of the discriminator");
  group.add("--discr-ff-mult", o.discr.ff_mult,
            "width of the discriminator's feed-forward layers as a multiple of its channels");
  group.add("--discr-antialiased-downsample", o.discr.antialiased_downsample,
            "blur before each downsampling in the discriminator");
  group.add("--multiscale-scales", o.multiscale_scales,
            "downscaling factors, one more discriminator of all frames for each, e.g. 1 2");
  group.add("--multiscale-dim", o.multiscale.dim,
            "first channels of the multi-scale discriminators, as --discr-dim; 0: --init-dim");
  group.add("--multiscale-max-dim", o.multiscale.max_dim,
            "maximum number of channels of the multi-scale discriminators");
  group.add("--multiscale-antialiased-downsample", o.multiscale.antialiased_downsample,
            "blur before each downsampling in the multi-scale discriminators");
  group.add("--multiscale-adversarial-loss-weight", model.multiscale_adversarial_loss_weight,
            "weight of each multi-scale discriminator's loss; 0: no multi-scale discriminators");
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
  VideoTokenizerTrainOptions values;
  const Options options = line.options();
  add_train_options(options, values.train, names);
  add_clip_options(options, values);
  add_model_options(options, values);
  add_loss_options(options, values);
  add_discriminator_options(options, values);
  return line.run(argc, argv,
                  [&] { return run_trainer("millrace_train_video_tokenizer", options, &values); });
}
