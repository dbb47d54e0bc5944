// train_mesh_transformer: trains MeshGPT's transformer on meshes, or on codes of its autoencoder.
#include "tools/train/mesh_transformer_options.h"

#include <string>

namespace millrace {
namespace {

constexpr const char* examples = R"(
Examples:
  train_mesh_transformer meshes --autoencoder checkpoints/mesh-autoencoder.ckpt.9.pt \
      --batch-size 4 --num-train-steps 100000 --max-seq-len 4800
  preprocess tokens meshes --model mesh-autoencoder.ckpt.9.pt --out codes.arrow
  train_mesh_transformer codes.arrow --autoencoder mesh-autoencoder.ckpt.9.pt ...   # much faster
  train_mesh_transformer meshes --condition-on-text true ...      # chair.obj and chair.txt
  train_mesh_transformer meshes --condition-on-text true --text-embeds t5.npy ...
  train_mesh_transformer --config results/config.toml --resume    # continue where it was stopped
  torchrun --no-python --nproc-per-node 2 train_mesh_transformer meshes ...

Meshes of a folder are encoded at every step, so they can be augmented. A cache of codes was encoded
once, and must come from the autoencoder that is given.
Texts are encoded by a small built-in encoder that is trained too, or given as embeddings
(--text-embeds): .npy [meshes, words, channels] in the order of the meshes' names, or Arrow with the
columns text_embeds and source.

Files it writes:
  checkpoints/mesh-transformer.ckpt.<n>.pt  everything that --resume needs, the autoencoder too, under the
                                            names that the trainer in Python loads; n counts
                                            --checkpoint-every
  results/metrics.jsonl, events.out.*       metrics; tensorboard --logdir results
  results/sampled.<step>.png, .<n>.obj      generated meshes, every --sample-every steps and at the
                                            end: pictures of all, and each as a file
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
                           .valid_batches = "--val-num-batches",
                           .average = false};

void add_data_options(const Options& options, MeshTransformerTrainOptions& o) {
  Options data = options.group("Data");
  data.add("--autoencoder", o.autoencoder,
           "checkpoint of the trained autoencoder: mesh-autoencoder.ckpt.<n>.pt, of Millrace or of "
           "Python")
      .required()
      .type_name("FILE");
  data.add("--autoencoder-weights", o.autoencoder_weights,
           "weights of the autoencoder to use: ema or model; default: the moving average if there "
           "is one")
      .one_of({"ema", "model"});
  data.add("--autoencoder-config", o.autoencoder_config,
           "arguments of the autoencoder as TOML or JSON, if its file does not have them")
      .type_name("FILE");
  data.add("--text-embeds", o.text_embeds,
           "text embeddings made by another text encoder; see below")
      .type_name("FILE");
  add_mesh_data_options(options, o.meshes, "fields of a mesh, named as in the Python package");
}

void add_model_options(const Options& options, MeshTransformerTrainOptions& o) {
  Options group = options.group("Model");
  MeshTransformerConfig& model = o.model;
  group.add("--dim", model.dim, "number of channels of the transformer");
  group
      .add("--max-seq-len", model.max_seq_len,
           "maximum number of codes of a mesh; longer meshes are left out; 0: 8192, rounded down "
           "to whole faces")
      .non_negative();
  group.add("--flash-attn", model.flash_attn,
            "torch's fused attention; gives the same results within rounding");
  group.add("--attn-depth", model.attn_depth,
            "number of layers of the coarse decoder, which attends over faces");
  group.add("--fine-attn-depth", model.fine_attn_depth,
            "number of layers of the fine decoder, which attends within a face");
  group.add("--attn-dim-head", model.attn_dim_head, "number of channels per attention head");
  group.add("--attn-heads", model.attn_heads, "number of attention heads per layer");
  group.add("--attn-kwargs", o.attn_kwargs,
            "further arguments of both decoders, named as in x-transformers, e.g. ff_glu=true "
            "rotary_pos_emb=true");
  group.add("--dropout", model.dropout, "dropout probability in attention and feed-forward layers")
      .range(0.0, 0.99);
  group.add("--coarse-pre-gateloop-depth", model.coarse_pre_gateloop_depth,
            "number of gate loop layers before the coarse decoder");
  group.add("--fine-pre-gateloop-depth", model.fine_pre_gateloop_depth,
            "number of gate loop layers before the fine decoder");
  group.add("--gateloop-use-heinsen", model.gateloop_use_heinsen,
            "Heinsen's scan in gate loops, as in the Python package; used with --compat only");
  group
      .add("--weights", o.weights,
           "weights to start from: a checkpoint of Millrace or of the Python trainer, or a "
           "state_dict")
      .type_name("FILE");
  group.flag("--compat", model.compat,
             "compute as the Python package does, including its label 0 after each mesh that is "
             "shorter than the longest of the batch");
}

void add_text_options(const Options& options, MeshTransformerTrainOptions& o) {
  Options text = options.group("Text");
  text.add("--condition-on-text", o.model.condition_on_text,
           "train with the text beside each mesh as a condition");
  text.add("--text-condition-cond-drop-prob", o.model.text_condition_cond_drop_prob,
           "probability that the text is dropped in training, for classifier-free guidance")
      .range(0.0, 1.0);
  text.add("--cross-attn-num-mem-kv", o.model.cross_attn_num_mem_kv,
           "number of learned keys and values beside those of the text");
  text.add("--dim-text", o.model.dim_text,
           "number of channels of a text; 0: those of --text-embeds, or --dim for the built-in "
           "encoder");
  text.add("--text-encoder-depth", o.text_encoder.depth,
           "number of layers of the built-in text encoder");
  text.add("--text-encoder-heads", o.text_encoder.heads,
           "number of attention heads of the built-in text encoder");
  text.add("--text-encoder-dim-head", o.text_encoder.dim_head,
           "number of channels per attention head of the built-in text encoder");
  text.add("--text-encoder-max-bytes", o.text_encoder.max_bytes,
           "maximum length of a text, in bytes; longer texts are cut")
      .positive();
}

void add_result_options(const Options& options, MeshTransformerTrainOptions& o) {
  options.group("Optimizer")
      .add("--max-grad-norm", o.stage.max_grad_norm,
           "maximum gradient norm of each parameter group; 0: no clipping")
      .non_negative();
  Options results = options.group("Results");
  results
      .add("--sample-every", o.stage.sample_every,
           "number of steps between generated meshes, made at the next validation and after the "
           "last step; 0: never")
      .non_negative();
  results
      .add("--num-samples", o.stage.num_samples,
           "number of meshes to generate; with texts, from the texts of one batch")
      .non_negative();
  results
      .add("--sample-temperature", o.stage.sample_temperature,
           "sampling temperature of generated meshes; 0: always the likeliest code")
      .non_negative();
  results
      .add("--sample-max-faces", o.stage.sample_max_faces,
           "maximum number of faces of a generated mesh; 0: as many as the model allows")
      .non_negative();
}

}  // namespace
}  // namespace millrace

int main(int argc, char** argv) {
  using namespace millrace;
  CommandLine line("train_mesh_transformer",
                   "Trains MeshGPT's transformer, which generates meshes as codes of a trained "
                   "autoencoder, with or without a text as a condition.",
                   examples);
  MeshTransformerTrainOptions values;
  const Options options = line.options();
  add_train_options(options, values.train, names);
  add_data_options(options, values);
  add_model_options(options, values);
  add_text_options(options, values);
  add_result_options(options, values);
  return line.run(argc, argv,
                  [&] { return run_trainer("millrace_train_mesh_transformer", options, &values); });
}
