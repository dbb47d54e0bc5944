// Trains MeshGPT's transformer on a folder of meshes, or on the codes of a trained autoencoder.
#include "tools/train/mesh_transformer_options.h"

#include <string>

namespace millrace {
namespace {

constexpr const char* examples = R"(
Examples:
  train_mesh_transformer meshes --autoencoder checkpoints/mesh-autoencoder.ckpt.9.pt \
      --batch-size 4 --num-train-steps 100000 --max-seq-len 4800
  preprocess tokens meshes --model mesh-autoencoder.ckpt.9.pt --out codes.arrow
  train_mesh_transformer codes.arrow --autoencoder mesh-autoencoder.ckpt.9.pt ...   # much sooner
  train_mesh_transformer meshes --condition-on-text true ...      # chair.obj and chair.txt
  train_mesh_transformer meshes --condition-on-text true --text-embeds t5.npy ...
  train_mesh_transformer --config results/config.toml --resume    # go on where it was stopped
  torchrun --no-python --nproc-per-node 2 train_mesh_transformer meshes ...

A folder's meshes are encoded at every step, which lets them be augmented; a cache of codes was
encoded once, and must be of the very autoencoder that is given.
Texts go through a small encoder that is trained too, or come as embeddings (--text-embeds): .npy
[meshes, words, channels] in the order of the meshes' names, or Arrow with the columns text_embeds
and source.

What it leaves behind:
  checkpoints/mesh-transformer.ckpt.<n>.pt  all that --resume needs, the autoencoder too, under the
                                            names that the trainer in Python loads; n counts
                                            --checkpoint-every
  results/metrics.jsonl, events.out.*       what was logged; tensorboard --logdir results
  results/sampled.<step>.png, .<n>.obj      meshes that it wrote, every --sample-every steps and in
                                            the end: pictures of all, and each of them
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

void add_data_options(CLI::App& app, MeshTransformerTrainOptions& o) {
  app.add_option("--autoencoder", o.autoencoder,
                 "the trained autoencoder: mesh-autoencoder.ckpt.<n>.pt, of here or of Python")
      ->required()
      ->type_name("FILE")
      ->group("Data");
  app.add_option("--autoencoder-weights", o.autoencoder_weights,
                 "of that file: ema or model; by default the moving average if there is one")
      ->check(CLI::IsMember({"ema", "model"}))
      ->group("Data");
  app.add_option("--autoencoder-config", o.autoencoder_config,
                 "its arguments, if its file does not hold them: TOML or JSON")
      ->type_name("FILE")
      ->group("Data");
  app.add_option("--text-embeds", o.text_embeds, "what a text encoder made of the texts; see below")
      ->type_name("FILE")
      ->group("Data");
  add_mesh_data_options(app, o.meshes, "the fields of a mesh, in the words of the package");
}

void add_model_options(CLI::App& app, MeshTransformerTrainOptions& o) {
  auto add = [&](const char* name, auto& value, const char* text) {
    return declare(app, name, value, text, "Model");
  };
  MeshTransformerConfig& model = o.model;
  add("--dim", model.dim, "channels");
  add("--max-seq-len", model.max_seq_len,
      "codes of a mesh; longer ones are left out. 0: 8192, or what of it makes whole faces")
      ->check(CLI::NonNegativeNumber);
  add("--flash-attn", model.flash_attn, "torch's fused attention; the same sums");
  add("--attn-depth", model.attn_depth, "layers of the decoder that goes from face to face");
  add("--fine-attn-depth", model.fine_attn_depth, "of the one within a face");
  add("--attn-dim-head", model.attn_dim_head, "channels of a head of attention");
  add("--attn-heads", model.attn_heads, "how many");
  add("--attn-kwargs", o.attn_kwargs,
      "more of both decoders, as x-transformers calls it, e.g. ff_glu=true rotary_pos_emb=true");
  add("--dropout", model.dropout, "of attention and feed-forward layers")
      ->check(CLI::Range(0.0, 0.99));
  add("--coarse-pre-gateloop-depth", model.coarse_pre_gateloop_depth,
      "gate loops before the coarse decoder");
  add("--fine-pre-gateloop-depth", model.fine_pre_gateloop_depth, "and before the fine one");
  add("--gateloop-use-heinsen", model.gateloop_use_heinsen,
      "how the package sums them; heeded with --compat alone");
  app.add_option("--weights", o.weights,
                 "start from these: a checkpoint, of here or of the trainer in Python, or a "
                 "state_dict")
      ->type_name("FILE")
      ->group("Model");
  app.add_flag("--compat", model.compat,
               "as the package does it, to its label 0 after a mesh that is not the longest")
      ->group("Model");
}

void add_text_options(CLI::App& app, MeshTransformerTrainOptions& o) {
  auto add = [&](const char* name, auto& value, const char* text) {
    return declare(app, name, value, text, "Text");
  };
  add("--condition-on-text", o.model.condition_on_text, "meshes are to show what their text says");
  add("--text-condition-cond-drop-prob", o.model.text_condition_cond_drop_prob,
      "texts that are dropped in training, so that generation can be guided")
      ->check(CLI::Range(0.0, 1.0));
  add("--cross-attn-num-mem-kv", o.model.cross_attn_num_mem_kv,
      "learned keys and values beside the text");
  add("--dim-text", o.model.dim_text,
      "channels of a text; 0: those of --text-embeds, or --dim for the encoder inside");
  add("--text-encoder-depth", o.text_encoder.depth, "layers of the encoder inside");
  add("--text-encoder-heads", o.text_encoder.heads, "its heads");
  add("--text-encoder-dim-head", o.text_encoder.dim_head, "channels of each");
  add("--text-encoder-max-bytes", o.text_encoder.max_bytes, "longer texts are cut off")
      ->check(CLI::PositiveNumber);
}

void add_result_options(CLI::App& app, MeshTransformerTrainOptions& o) {
  declare(app, "--max-grad-norm", o.stage.max_grad_norm,
          "clips the gradients of each group of parameters; 0: not", "Optimizer")
      ->check(CLI::NonNegativeNumber);
  auto add = [&](const char* name, auto& value, const char* text) {
    return declare(app, name, value, text, "Results")->check(CLI::NonNegativeNumber);
  };
  add("--sample-every", o.stage.sample_every,
      "steps between meshes that it writes, with the next validation, and after the last step; 0: "
      "never");
  add("--num-samples", o.stage.num_samples, "how many; with texts, of those of one batch");
  add("--sample-temperature", o.stage.sample_temperature, "0: the likeliest codes");
  add("--sample-max-faces", o.stage.sample_max_faces,
      "longer ones are cut off; 0: as many as the model can");
}

}  // namespace
}  // namespace millrace

int main(int argc, char** argv) {
  using namespace millrace;
  CommandLine line("train_mesh_transformer",
                   "Trains MeshGPT's transformer, which writes meshes as the codes of a trained "
                   "autoencoder, with or without a text that they are to show.",
                   examples);
  MeshTransformerTrainOptions options;
  add_train_options(line.app(), options.train, names);
  add_data_options(line.app(), options);
  add_model_options(line.app(), options);
  add_text_options(line.app(), options);
  add_result_options(line.app(), options);
  return line.run(argc, argv, [&] {
    return run_trainer("millrace_train_mesh_transformer", line.app(), &options);
  });
}
