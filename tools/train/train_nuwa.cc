// Trains NUWA's text to video.
#include "tools/train/nuwa_options.h"

#include <string>

namespace millrace {
namespace {

constexpr const char* examples = R"(
Examples:
  train_nuwa gifs --vae results/vae.9000.pt --dim 512 --num-train-steps 100000
  train_nuwa moving.npy --texts captions.txt --vae vae.9000.pt --dim 256 --num-train-steps 20000
  preprocess tokens gifs --model results/checkpoint.9000.pt --frames 10 --captions --out tokens.arrow
  train_nuwa tokens.arrow --vae results/checkpoint.9000.pt --dim 512 ...     # sooner
  train_nuwa --config results-nuwa/config.toml --resume        # go on where it was stopped
  torchrun --no-python --nproc-per-node 2 train_nuwa gifs --vae vae.9000.pt ...

What it is trained on:
  a folder       GIFs with a text beside each, a.gif and a.txt
  videos         uint8 .npy or raw memmap of clips, with --texts or --digits
  tokens         what `preprocess tokens --captions` wrote (.arrow), or an .npy or raw memmap of
                 codes with --texts or --digits
Clips are brought to --max-video-frames frames of the VAE's size: the first ones, cut in the middle;
short ones repeat their last frame.

What it leaves in the results folder:
  <step>.png, <step>.gif            what the model makes of a text: frames one below the other, and
                                    as a clip; the text is in the log
  nuwa.<step>.pt                    weights, for NUWA.load_state_dict in Python, with the VAE's
  checkpoint.<steps>.pt             all that --resume needs
  metrics.jsonl, events.out.*       what was logged; tensorboard --logdir results-nuwa
  config.toml                       every option, for --config
  errors.jsonl                      files that could not be read
)";

void add_data_options(CLI::App& app, NuwaTrainOptions& o) {
  auto add = [&](const char* name, auto& value, const char* text) {
    return declare(app, name, value, text, "Data");
  };
  auto file = [&](const char* name, std::string& value, const char* text) {
    return app.add_option(name, value, text)->type_name("FILE")->group("Data");
  };
  add("--dataset-type", o.dataset_type,
      "gifs, videos or tokens, see below; auto: by what it is and how large its rows are")
      ->check(CLI::IsMember({"auto", "gifs", "videos", "tokens"}));
  auto* texts = file("--texts", o.texts, "of an array file: UTF-8, one line a clip");
  file("--digits", o.digits, "of an array file: uint8 [clips, digits], which read \"3 7\"")
      ->excludes(texts);
  add("--num-digits", o.num_digits, "in a row of --digits, if that has no header")
      ->check(CLI::PositiveNumber);
  add("--random-rotate", o.random_rotate, "clips of an array file: by 0, 90, 180 or 270 degrees");
  add("--frame-choice", o.frame_choice, "of GIFs: first, random (a window) or uniform (spread)")
      ->check(CLI::IsMember({"first", "random", "uniform"}));
  add("--frame-stride", o.frame_stride, "of GIFs: take every n-th frame")
      ->check(CLI::PositiveNumber);
  add("--short-clips", o.short_clips,
      "GIFs with too few frames: repeat the last, black, loop, or error: leave them out")
      ->check(CLI::IsMember({"repeat", "black", "loop", "error"}));
  file("--bpe", o.bpe, "a vocabulary of merges in CLIP's format; without one, bytes are tokens");
  add("--no-cut", o.no_cut, "a text of more than --text-max-seq-len tokens is an error, not cut");
}

void add_model_options(CLI::App& app, NuwaTrainOptions& o) {
  auto add = [&](const char* name, auto& value, const char* text) {
    return declare(app, name, value, text, "Model");
  };
  auto file = [&](const char* name, std::string& value, const char* text) {
    return app.add_option(name, value, text)->type_name("FILE")->group("Model");
  };
  NuwaConfig& model = o.model;
  file("--vae", o.vae, "what train_nuwa_vae or its trainer in Python left")->required();
  file("--vae-config", o.vae_config,
       "its arguments as TOML or JSON, if neither it nor a config.toml beside it holds them");
  app.add_option("--vae-weights", o.vae_weights,
                 "ema or model; by default the moving average if there is one")
      ->check(CLI::IsMember({"ema", "model"}))
      ->group("Model");
  app.add_option("--dim", model.dim, "channels of the transformers")->required()->group("Model");
  add("--max-video-frames", model.max_video_frames, "of a clip");
  add("--text-num-tokens", model.text_num_tokens, "how many there are; 0: as the tokenizer has");
  add("--text-max-seq-len", model.text_max_seq_len, "tokens of a text");
  add("--text-enc-depth", model.text_enc_depth, "layers of the transformer of texts");
  add("--text-enc-dim-head", model.text_enc_dim_head, "channels of its heads");
  add("--text-enc-heads", model.text_enc_heads, "how many");
  add("--text-rotary-pos-emb", model.text_rotary_pos_emb, "false: absolute positions");
  add("--enc-reversible", model.enc_reversible, "two streams; Python cannot run it otherwise");
  add("--dec-depth", model.dec_depth, "layers of the transformer of videos");
  add("--dec-dim-head", model.dec_dim_head, "channels of its heads");
  add("--dec-heads", model.dec_heads, "how many");
  add("--dec-reversible", model.dec_reversible, "two streams");
  add("--attn-dropout", model.attn_dropout, "of attention")->check(CLI::Range(0.0, 0.99));
  add("--ff-dropout", model.ff_dropout, "of feed-forward layers")->check(CLI::Range(0.0, 0.99));
  add("--embed-gradient-frac", model.embed_gradient_frac,
      "tables learn by so much of the gradient");
  add("--shift-video-tokens", model.shift_video_tokens, "channels of the row above and the left");
  add("--sparse-3dna-kernel-size", o.kernel,
      "neighbours that a code sees: one number, or time, height and width; odd");
  add("--sparse-3dna-dilation", model.sparse_3dna_dilation,
      "how far apart they are: layers go from 1 to it, or through these");
  add("--sparse-3dna-rel-pos-bias", model.sparse_3dna_rel_pos_bias, "by where they lie");
  add("--sparse-3dna-query-num-frames-chunk", model.sparse_3dna_query_num_frames_chunk,
      "frames that attend at once; 0: all");
  file("--weights", o.weights,
       "start from these: a nuwa.<step>.pt or checkpoint, of here or Python");
}

void add_stage_options(CLI::App& app, NuwaTrainOptions& o) {
  auto add = [&](const char* name, auto& value, const char* text) {
    return declare(app, name, value, text, "Losses and samples");
  };
  NuwaStageOptions& stage = o.stage;
  add("--max-grad-norm", stage.max_grad_norm, "clips the gradients; 0: not")
      ->check(CLI::NonNegativeNumber);
  add("--cond-dropout-prob", stage.cond_dropout_prob, "how often a text is left out")
      ->check(CLI::Range(0.0, 1.0));
  add("--num-sampled-frames", o.num_sampled_frames, "of a sample; 0: as many as a clip has")
      ->check(CLI::NonNegativeNumber);
  add("--prompts", stage.prompts,
      "texts to show samples of, side by side; without, the first of the validation set");
  add("--cond-scale", stage.generate.cond_scale, "how much the text counts in a sample; 1: once");
  add("--filter-thres", stage.generate.filter_thres, "codes are chosen from the best 1 - this")
      ->check(CLI::Range(0.0, 1.0));
  add("--temperature", stage.generate.temperature, "of the choice")->check(CLI::PositiveNumber);
  app.add_flag("--compat", stage.compat,
               "as the package does it: guidance fed with outputs, sums in its order")
      ->group("Losses and samples");
}

}  // namespace
}  // namespace millrace

int main(int argc, char** argv) {
  using namespace millrace;
  CommandLine line("train_nuwa",
                   "Trains NUWA, which makes videos of texts: a transformer tells the codes of a "
                   "video one by one, and a trained VAE makes frames of them.",
                   examples);
  NuwaTrainOptions options;
  options.model.text_num_tokens = 0;
  add_train_options(line.app(), options.train);
  add_data_options(line.app(), options);
  add_model_options(line.app(), options);
  add_stage_options(line.app(), options);
  return line.run(argc, argv,
                  [&] { return run_trainer("millrace_train_nuwa", line.app(), &options); });
}
