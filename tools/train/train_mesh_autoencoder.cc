// Trains MeshGPT's autoencoder on a folder of meshes.
#include "tools/train/mesh_autoencoder_options.h"

#include <string>

namespace millrace {
namespace {

constexpr const char* examples = R"(
Examples:
  train_mesh_autoencoder meshes --batch-size 16 --num-train-steps 100000
  train_mesh_autoencoder meshes --batch-size 16 --num-train-steps 100000 --max-faces 800 \
      --num-discrete-coors 128 --augment-scale-low 0.75 --augment-scale-high 1.25
  train_mesh_autoencoder --config run.toml                            # all of it in a file
  train_mesh_autoencoder --config results/config.toml --resume        # go on where it was stopped
  train_mesh_autoencoder meshes.arrow ...                  # a cache of preprocess meshes
  torchrun --no-python --nproc-per-node 2 train_mesh_autoencoder meshes ...
then
  preprocess tokens meshes --model checkpoints/mesh-autoencoder.ckpt.9.pt --out codes.arrow

What it leaves behind:
  checkpoints/mesh-autoencoder.ckpt.<n>.pt  all that --resume needs, under the names that the
                                            trainer in Python loads; n counts --checkpoint-every
  results/reconstructed.<step>.png, .ema.png  meshes of the validation set beside what the model
                                            and its moving average make of their codes
  results/reconstructed.<step>.obj          the first of these
  results/metrics.jsonl, events.out.*       what was logged; tensorboard --logdir results
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

void add_mesh_options(CLI::App& app, MeshAutoencoderTrainOptions& o) {
  auto add = [&](const char* name, auto& value, const char* text) {
    return declare(app, name, value, text, "Data");
  };
  add_mesh_data_options(
      app, o.meshes, "the fields of a mesh, in the words of the package; texts are not looked at");
  add("--max-faces", o.meshes.data.max_faces,
      "meshes of more are left out, for memory grows with the largest; 0: none is")
      ->check(CLI::NonNegativeNumber);
  add("--over-long", o.over_long,
      "meshes of more faces: skip them, with a line each, or treat them as bad files (error)")
      ->check(CLI::IsMember({"skip", "error"}));
}

void add_model_options(CLI::App& app, MeshAutoencoderTrainOptions& o) {
  auto add = [&](const char* name, auto& value, const char* text) {
    return declare(app, name, value, text, "Model");
  };
  MeshAutoencoderConfig& model = o.model;
  add("--num-discrete-coors", model.num_discrete_coors, "bins of a coordinate");
  add("--coor-continuous-range", o.coordinate_range, "from the first to the last")->expected(2);
  add("--dim-coor-embed", model.dim_coor_embed, "of a coordinate");
  add("--num-discrete-area", model.num_discrete_area, "bins of a face's area");
  add("--dim-area-embed", model.dim_area_embed, "of an area");
  add("--num-discrete-normals", model.num_discrete_normals, "bins of a normal's coordinate");
  add("--dim-normal-embed", model.dim_normal_embed, "of such a coordinate");
  add("--num-discrete-angle", model.num_discrete_angle, "bins of an angle");
  add("--dim-angle-embed", model.dim_angle_embed, "of an angle");
  add("--encoder-dims-through-depth", model.encoder_dims_through_depth, "of each graph convolution")
      ->delimiter(',');
  add("--init-decoder-conv-kernel", model.init_decoder_conv_kernel, "faces; odd");
  add("--decoder-dims-through-depth", model.decoder_dims_through_depth,
      "of each block of the decoder")
      ->delimiter(',');
  add("--sageconv-aggr", model.sageconv_kwargs.aggr, "mean or sum over the faces that touch");
  add("--sageconv-normalize", model.sageconv_kwargs.normalize, "to length 1, after each");
  add("--sageconv-project", model.sageconv_kwargs.project, "a layer before each");
  add("--sageconv-root-weight", model.sageconv_kwargs.root_weight, "a face beside its neighbours");
  add("--sageconv-bias", model.sageconv_kwargs.bias, "of each");
  add("--resnet-dropout", model.resnet_dropout, "of the decoder")->check(CLI::Range(0.0, 0.99));
  app.add_option("--weights", o.weights,
                 "start from these: a checkpoint, of here or of the trainer in Python, or a "
                 "state_dict")
      ->type_name("FILE")
      ->group("Model");
  add("--faces-at-once", o.stage.faces_at_once,
      "larger batches go through the model in groups of meshes of so many faces, and again in the "
      "backward pass: less memory, a third slower")
      ->check(CLI::PositiveNumber);
}

void add_quantizer_options(CLI::App& app, MeshAutoencoderTrainOptions& o) {
  auto add = [&](const char* name, auto& value, const char* text) {
    return declare(app, name, value, text, "Quantizers");
  };
  MeshAutoencoderConfig& model = o.model;
  add("--dim-codebook", model.dim_codebook, "of a vertex, before it becomes codes");
  add("--num-quantizers", model.num_quantizers, "codes of a vertex");
  add("--codebook-size", model.codebook_size, "how many codes there are");
  add("--use-residual-lfq", model.use_residual_lfq, "lookup-free; false: a codebook for all");
  add("--quantize-dropout", model.rq_kwargs.quantize_dropout, "leave later ones out at random");
  add("--quantize-dropout-cutoff-index", model.rq_kwargs.quantize_dropout_cutoff_index,
      "the first that may be the last");
  add("--quantize-dropout-multiple-of", model.rq_kwargs.quantize_dropout_multiple_of,
      "so many together");
  add("--rlfq-entropy-loss-weight", model.rlfq_kwargs.entropy_loss_weight,
      "clear choices, and variety");
  add("--rlfq-diversity-gamma", model.rlfq_kwargs.diversity_gamma, "of variety among them");
  add("--rlfq-frac-per-sample-entropy", model.rlfq_kwargs.frac_per_sample_entropy,
      "judged by this share of the vertices");
  add("--rlfq-use-code-agnostic-commit-loss", model.rlfq_kwargs.use_code_agnostic_commit_loss,
      "of distances to any code");
  add("--rlfq-soft-clamp-input-value", o.soft_clamp, "of features; 0: not")
      ->check(CLI::NonNegativeNumber);
  add("--rvq-codebook-dim", model.rvq_kwargs.codebook_dim, "0: as --dim-codebook");
  add("--rvq-decay", model.rvq_kwargs.decay, "of the codebook, which follows the features");
  add("--rvq-eps", model.rvq_kwargs.eps, "of it");
  add("--rvq-kmeans-init", model.rvq_kwargs.kmeans_init, "start as means of the first batch");
  add("--rvq-kmeans-iters", model.rvq_kwargs.kmeans_iters, "of these");
  add("--rvq-use-cosine-sim", model.rvq_kwargs.use_cosine_sim, "codes of length 1");
  add("--rvq-threshold-ema-dead-code", model.rvq_kwargs.threshold_ema_dead_code,
      "codes that are used less become features");
  add("--rvq-stochastic-sample-codes", model.rvq_stochastic_sample_codes,
      "the nearer, the likelier, in training");
  add("--commit-loss-weight", model.commit_loss_weight, "of all that the quantizers add");
  add("--bin-smooth-blur-sigma", model.bin_smooth_blur_sigma,
      "bins beside the right one count too; below 0: not");
  add("--max-grad-norm", o.stage.max_grad_norm,
      "clips the gradients, with weight decay those of either group; 0: not")
      ->check(CLI::NonNegativeNumber);
  add("--num-save-recons", o.stage.num_save_recons, "meshes in a reconstructed.<step>.png")
      ->check(CLI::PositiveNumber);
  app.add_flag("--compat", o.stage.compat,
               "as the package does it: its learning rate, which stays at 1 / warmup-steps of what "
               "is asked for, and its loss, where vertices count that are not there")
      ->group("Quantizers");
}

void add_attention_options(CLI::App& app, MeshAutoencoderTrainOptions& o) {
  auto add = [&](const char* name, auto& value, const char* text) {
    return declare(app, name, value, text, "Attention");
  };
  MeshAutoencoderConfig& model = o.model;
  LocalAttentionConfig& local = model.local_attn_kwargs;
  LinearAttentionConfig& linear = model.linear_attn_kwargs;
  add("--attn-encoder-depth", model.attn_encoder_depth, "blocks after the graph convolutions");
  add("--attn-decoder-depth", model.attn_decoder_depth, "blocks before the decoder");
  add("--attn-dropout", model.attn_dropout, "of local attention");
  add("--ff-dropout", model.ff_dropout, "of the layers that follow");
  add("--local-attn-window-size", model.local_attn_window_size, "faces of a window");
  add("--local-attn-dim-head", local.dim_head, "channels of a head");
  add("--local-attn-heads", local.heads, "how many");
  add("--local-attn-qk-rmsnorm", local.qk_rmsnorm, "queries and keys have length 1");
  add("--local-attn-qk-scale", local.qk_scale, "their products are scaled by this then");
  add("--local-attn-use-rotary-pos-emb", local.use_rotary_pos_emb, "places of faces are seen");
  add("--local-attn-use-xpos", local.use_xpos, "and distances");
  add("--local-attn-exact-windowsize", local.exact_windowsize, "none beyond a window's size");
  add("--local-attn-gate-values-per-head", local.gate_values_per_head, "a gate for each head");
  add("--local-attn-shared-qk", local.shared_qk, "for queries that are keys too");
  add("--local-attn-look-backward", local.look_backward, "windows before a face's own");
  add("--local-attn-look-forward", local.look_forward, "and after it");
  add("--use-linear-attn", model.use_linear_attn, "over all faces, before the local one");
  add("--linear-attn-dim-head", linear.dim_head, "channels of a head");
  add("--linear-attn-heads", linear.heads, "how many");
  add("--linear-attn-one-headed-kv", linear.one_headed_kv, "one head of keys and values");
  add("--linear-attn-gate-value-heads", linear.gate_value_heads, "a gate for each head");
  add("--linear-attn-shift-tokens", linear.shift_tokens, "half of a face from the one before");
  add("--linear-attn-dropout", linear.dropout, "of its output");
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
  MeshAutoencoderTrainOptions options;
  add_train_options(line.app(), options.train, names);
  add_mesh_options(line.app(), options);
  add_model_options(line.app(), options);
  add_quantizer_options(line.app(), options);
  add_attention_options(line.app(), options);
  return line.run(argc, argv, [&] {
    return run_trainer("millrace_train_mesh_autoencoder", line.app(), &options);
  });
}
