// train_mesh_autoencoder: trains MeshGPT's autoencoder on a folder of meshes.
#include "tools/train/mesh_autoencoder_options.h"

#include <string>

namespace millrace {
namespace {

constexpr const char* examples = R"(
Examples:
  train_mesh_autoencoder meshes --batch-size 16 --num-train-steps 100000
  train_mesh_autoencoder meshes --batch-size 16 --num-train-steps 100000 --max-faces 800 \
      --num-discrete-coors 128 --augment-scale-low 0.75 --augment-scale-high 1.25
  train_mesh_autoencoder --config run.toml                            # all options in a file
  train_mesh_autoencoder --config results/config.toml --resume        # continue where it was stopped
  train_mesh_autoencoder meshes.arrow ...                  # a cache of preprocess meshes
  torchrun --no-python --nproc-per-node 2 train_mesh_autoencoder meshes ...
then
  preprocess tokens meshes --model checkpoints/mesh-autoencoder.ckpt.9.pt --out codes.arrow

Files it writes:
  checkpoints/mesh-autoencoder.ckpt.<n>.pt  everything that --resume needs, under the names that the
                                            trainer in Python loads; n counts --checkpoint-every
  results/reconstructed.<step>.png, .ema.png  meshes of the validation set and their
                                            reconstructions by the model or its moving average
  results/reconstructed.<step>.obj          the first of these meshes
  results/metrics.jsonl, events.out.*       metrics; tensorboard --logdir results
  results/config.toml                       every option, for --config
  results/errors.jsonl                      files that could not be read
)";

constexpr TrainNames names{.folder = "folder,--dataset",
                           .lr = "--learning-rate",
                           .schedule = "--scheduler",
                           .save_results_every = "--val-every",
                           .save_model_every = nullptr,
                           .checkpoint_every = "--checkpoint-every",
                           .checkpoints_folder = "--checkpoint-folder",
                           .valid_batches = "--val-num-batches"};

void add_mesh_options(const Options& options, MeshAutoencoderTrainOptions& o) {
  add_mesh_data_options(options, o.meshes,
                        "fields of a mesh, named as in the Python package; texts are ignored");
  Options data = options.group("Data");
  data.add("--max-faces", o.meshes.data.max_faces,
           "maximum number of faces of a mesh; larger meshes are left out, see --over-long; 0: no "
           "limit")
      .non_negative();
  data.add("--over-long", o.over_long,
           "what to do with meshes over --max-faces: skip them with one log line each, or error: "
           "treat them as unreadable files")
      .one_of({"skip", "error"});
}

void add_model_options(const Options& options, MeshAutoencoderTrainOptions& o) {
  Options group = options.group("Model");
  MeshAutoencoderConfig& model = o.model;
  group.add("--num-discrete-coors", model.num_discrete_coors, "number of bins of a coordinate");
  group
      .add("--coor-continuous-range", o.coordinate_range,
           "minimum and maximum of a coordinate, for the bins")
      .expected(2);
  group.add("--dim-coor-embed", model.dim_coor_embed, "embedding size of a coordinate");
  group.add("--num-discrete-area", model.num_discrete_area, "number of bins of a face's area");
  group.add("--dim-area-embed", model.dim_area_embed, "embedding size of a face's area");
  group.add("--num-discrete-normals", model.num_discrete_normals,
            "number of bins of each coordinate of a face's normal");
  group.add("--dim-normal-embed", model.dim_normal_embed,
            "embedding size of each coordinate of a normal");
  group.add("--num-discrete-angle", model.num_discrete_angle, "number of bins of an angle");
  group.add("--dim-angle-embed", model.dim_angle_embed, "embedding size of an angle");
  group
      .add("--encoder-dims-through-depth", model.encoder_dims_through_depth,
           "number of channels of each graph convolution of the encoder")
      .separator(',');
  group.add("--init-decoder-conv-kernel", model.init_decoder_conv_kernel,
            "kernel size of the decoder's first convolution, in faces; odd");
  group
      .add("--decoder-dims-through-depth", model.decoder_dims_through_depth,
           "number of channels of each residual block of the decoder")
      .separator(',');
  group.add("--sageconv-aggr", model.sageconv_kwargs.aggr,
            "aggregation over adjacent faces in a graph convolution: mean or sum");
  group.add("--sageconv-normalize", model.sageconv_kwargs.normalize,
            "normalise the output of each graph convolution to length 1");
  group.add("--sageconv-project", model.sageconv_kwargs.project,
            "linear layer before each graph convolution");
  group.add("--sageconv-root-weight", model.sageconv_kwargs.root_weight,
            "graph convolutions add the face itself to its neighbours");
  group.add("--sageconv-bias", model.sageconv_kwargs.bias, "bias of each graph convolution");
  group
      .add("--resnet-dropout", model.resnet_dropout,
           "dropout probability in the decoder's residual blocks")
      .range(0.0, 0.99);
  group
      .add("--weights", o.weights,
           "weights to start from: a checkpoint of Millrace or of the Python trainer, or a "
           "state_dict")
      .type_name("FILE");
  group
      .add("--faces-at-once", o.stage.faces_at_once,
           "maximum number of faces per pass through the model; larger batches are split and "
           "recomputed in the backward pass: less memory, a third slower")
      .positive();
}

void add_codebook_options(const Options& group, MeshAutoencoderConfig& model) {
  group.add("--rvq-codebook-dim", model.rvq_kwargs.codebook_dim,
            "number of dimensions of a code of the codebook; 0: as --dim-codebook");
  group.add("--rvq-decay", model.rvq_kwargs.decay,
            "decay of the codebook's moving average per step");
  group.add("--rvq-eps", model.rvq_kwargs.eps, "Laplace smoothing of the codes' usage counts");
  group.add("--rvq-kmeans-init", model.rvq_kwargs.kmeans_init,
            "initialise the codebook by k-means over the first batch");
  group.add("--rvq-kmeans-iters", model.rvq_kwargs.kmeans_iters, "number of k-means iterations");
  group.add("--rvq-use-cosine-sim", model.rvq_kwargs.use_cosine_sim,
            "choose codes by cosine similarity; false: by Euclidean distance");
  group.add("--rvq-threshold-ema-dead-code", model.rvq_kwargs.threshold_ema_dead_code,
            "average usage below which a code is replaced by a random feature; 0: never");
  group.add("--rvq-stochastic-sample-codes", model.rvq_stochastic_sample_codes,
            "sample codes in training, nearer ones with higher probability");
}

void add_quantizer_options(const Options& options, MeshAutoencoderTrainOptions& o) {
  Options group = options.group("Quantizers");
  MeshAutoencoderConfig& model = o.model;
  group.add("--dim-codebook", model.dim_codebook,
            "number of channels of a vertex before quantization");
  group.add("--num-quantizers", model.num_quantizers,
            "number of residual quantizers: codes per vertex");
  group.add("--codebook-size", model.codebook_size, "number of codes of each quantizer");
  group.add("--use-residual-lfq", model.use_residual_lfq,
            "residual lookup-free quantizers (rlfq); false: a shared codebook (rvq)");
  group.add("--quantize-dropout", model.rq_kwargs.quantize_dropout,
            "leave out a random number of the last quantizers in training");
  group.add("--quantize-dropout-cutoff-index", model.rq_kwargs.quantize_dropout_cutoff_index,
            "index of the first quantizer that may be the last one kept");
  group.add("--quantize-dropout-multiple-of", model.rq_kwargs.quantize_dropout_multiple_of,
            "round the number of quantizers kept to a multiple of this");
  group.add("--rlfq-entropy-loss-weight", model.rlfq_kwargs.entropy_loss_weight,
            "weight of the entropy loss: certain choices, evenly used codes");
  group.add("--rlfq-diversity-gamma", model.rlfq_kwargs.diversity_gamma,
            "weight of even code usage within the entropy loss");
  group.add("--rlfq-frac-per-sample-entropy", model.rlfq_kwargs.frac_per_sample_entropy,
            "fraction of vertices that the entropy loss samples");
  group.add("--rlfq-use-code-agnostic-commit-loss", model.rlfq_kwargs.use_code_agnostic_commit_loss,
            "commitment loss of the features' magnitudes, whichever code is chosen");
  group
      .add("--rlfq-soft-clamp-input-value", o.soft_clamp,
           "bound of the features, by tanh; 0: no bound")
      .non_negative();
  add_codebook_options(group, model);
  group.add("--commit-loss-weight", model.commit_loss_weight,
            "weight of the sum of all quantizer losses");
  group.add("--bin-smooth-blur-sigma", model.bin_smooth_blur_sigma,
            "standard deviation of the label smoothing over neighbouring bins; below 0: none");
  group
      .add("--max-grad-norm", o.stage.max_grad_norm,
           "maximum gradient norm of each parameter group; 0: no clipping")
      .non_negative();
  group
      .add("--num-save-recons", o.stage.num_save_recons,
           "number of meshes in a reconstructed.<step>.png")
      .positive();
  group.flag("--compat", o.stage.compat,
             "compute as the Python package does: its learning rate, which stays at 1 / "
             "warmup-steps of the one asked for, and its loss, which counts padded vertices");
}

void add_local_attention_options(const Options& options, MeshAutoencoderConfig& model) {
  LocalAttentionConfig& local = model.local_attn_kwargs;
  options.add("--local-attn-window-size", model.local_attn_window_size,
              "number of faces in a local attention window");
  options.add("--local-attn-dim-head", local.dim_head,
              "number of channels per head of local attention");
  options.add("--local-attn-heads", local.heads, "number of heads of local attention");
  options.add("--local-attn-qk-rmsnorm", local.qk_rmsnorm,
              "normalise queries and keys of local attention to length 1");
  options.add("--local-attn-qk-scale", local.qk_scale,
              "scale of query-key products with --local-attn-qk-rmsnorm");
  options.add("--local-attn-use-rotary-pos-emb", local.use_rotary_pos_emb,
              "rotary position embedding in local attention");
  options.add("--local-attn-use-xpos", local.use_xpos,
              "rotary embedding with decay over distance (xPos) in local attention");
  options.add("--local-attn-exact-windowsize", local.exact_windowsize,
              "a face attends to no face further away than the window size");
  options.add("--local-attn-gate-values-per-head", local.gate_values_per_head,
              "learned gate for each head of local attention");
  options.add("--local-attn-shared-qk", local.shared_qk,
              "share one projection between queries and keys of local attention");
  options.add("--local-attn-look-backward", local.look_backward,
              "number of windows before its own that a face attends to");
  options.add("--local-attn-look-forward", local.look_forward,
              "number of windows after its own that a face attends to");
}

void add_attention_options(const Options& options, MeshAutoencoderTrainOptions& o) {
  Options group = options.group("Attention");
  MeshAutoencoderConfig& model = o.model;
  LinearAttentionConfig& linear = model.linear_attn_kwargs;
  group.add("--attn-encoder-depth", model.attn_encoder_depth,
            "number of attention blocks after the graph convolutions");
  group.add("--attn-decoder-depth", model.attn_decoder_depth,
            "number of attention blocks before the decoder");
  group.add("--attn-dropout", model.attn_dropout, "dropout probability in local attention");
  group.add("--ff-dropout", model.ff_dropout, "dropout probability in feed-forward layers");
  add_local_attention_options(group, model);
  group.add("--use-linear-attn", model.use_linear_attn,
            "linear attention over all faces before local attention");
  group.add("--linear-attn-dim-head", linear.dim_head,
            "number of channels per head of linear attention");
  group.add("--linear-attn-heads", linear.heads, "number of heads of linear attention");
  group.add("--linear-attn-one-headed-kv", linear.one_headed_kv,
            "one head of keys and values in linear attention, shared by all queries");
  group.add("--linear-attn-gate-value-heads", linear.gate_value_heads,
            "learned gate for each head of linear attention");
  group.add("--linear-attn-shift-tokens", linear.shift_tokens,
            "take half of the channels from the previous face before linear attention");
  group.add("--linear-attn-dropout", linear.dropout, "dropout probability after linear attention");
}

}  // namespace
}  // namespace millrace

int main(int argc, char** argv) {
  using namespace millrace;
  CommandLine line("train_mesh_autoencoder",
                   "Trains MeshGPT's autoencoder on a folder of meshes: an encoder that turns the "
                   "vertices of each face into a few codes, and a decoder that turns codes into "
                   "faces.",
                   examples);
  MeshAutoencoderTrainOptions values;
  const Options options = line.options();
  add_train_options(options, values.train, names);
  add_mesh_options(options, values);
  add_model_options(options, values);
  add_quantizer_options(options, values);
  add_attention_options(options, values);
  return line.run(argc, argv,
                  [&] { return run_trainer("millrace_train_mesh_autoencoder", options, &values); });
}
