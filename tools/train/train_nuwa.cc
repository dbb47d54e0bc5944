// train_nuwa: trains NUWA, text to video.
#include "tools/train/nuwa_options.h"

#include <string>

namespace millrace {
namespace {

constexpr const char* examples = R"(
Examples:
  train_nuwa gifs --vae results/vae.9000.pt --dim 512 --num-train-steps 100000
  train_nuwa moving.npy --texts captions.txt --vae vae.9000.pt --dim 256 --num-train-steps 20000
  preprocess tokens gifs --model results/checkpoint.9000.pt --frames 10 --captions --out tokens.arrow
  train_nuwa tokens.arrow --vae results/checkpoint.9000.pt --dim 512 ...     # faster
  train_nuwa --config results-nuwa/config.toml --resume        # continue where it was stopped
  torchrun --no-python --nproc-per-node 2 train_nuwa gifs --vae vae.9000.pt ...

Training data:
  a folder       GIFs with a text beside each, a.gif and a.txt
  videos         uint8 .npy or raw memmap of clips, with --texts or --digits
  tokens         cache written by `preprocess tokens --captions` (.arrow), or an .npy or raw memmap
                 of codes with --texts or --digits
From each clip the first --max-video-frames frames are taken, cropped to the VAE's size; short clips
repeat their last frame.

Files in the results folder:
  <step>.png, <step>.gif            a clip generated from a text, as frames and as a GIF; the text
                                    is in the log
  nuwa.<step>.pt                    weights, for NUWA.load_state_dict in Python, with the VAE's
  checkpoint.<steps>.pt             everything that --resume needs
  metrics.jsonl, events.out.*       metrics; tensorboard --logdir results-nuwa
  config.toml                       every option, for --config
  errors.jsonl                      files that could not be read
)";

// As the Python trainer: NUWA keeps no moving average, so it has no options for one.
constexpr TrainNames names{.average = false};

void add_data_options(const Options& options, NuwaTrainOptions& o) {
  Options data = options.group("Data");
  data.add("--dataset-type", o.dataset_type,
           "kind of data: gifs, videos or tokens, see below; auto: found from the file and the "
           "size of its rows")
      .one_of({"auto", "gifs", "videos", "tokens"});
  Option texts =
      data.add("--texts", o.texts, "captions for an array file: UTF-8, one line per clip")
          .type_name("FILE");
  data.add("--digits", o.digits,
           "captions for an array file: uint8 [clips, digits], read as \"3 7\"")
      .type_name("FILE")
      .excludes(texts);
  data.add("--num-digits", o.num_digits, "number of digits per row of a raw --digits file")
      .positive();
  data.add("--random-rotate", o.random_rotate,
           "rotate clips of an array file by a random multiple of 90 degrees");
  data.add("--frame-choice", o.frame_choice,
           "which frames of a GIF to take: first, random (a random window) or uniform (evenly "
           "spread)")
      .one_of({"first", "random", "uniform"});
  data.add("--frame-stride", o.frame_stride, "take every n-th frame of a GIF").positive();
  data.add("--short-clips", o.short_clips,
           "fill GIFs with too few frames: repeat the last, black, loop; or error: leave them out")
      .one_of({"repeat", "black", "loop", "error"});
  data.add("--bpe", o.bpe,
           "BPE merges file in CLIP's format; default: every byte of a text is a token")
      .type_name("FILE");
  data.add("--no-cut", o.no_cut,
           "treat a text of more than --text-max-seq-len tokens as an error instead of cutting it");
}

void add_model_options(const Options& options, NuwaTrainOptions& o) {
  Options group = options.group("Model");
  NuwaConfig& model = o.model;
  group.add("--vae", o.vae, "weights or checkpoint of train_nuwa_vae or of its Python trainer")
      .type_name("FILE")
      .required();
  group
      .add("--vae-config", o.vae_config,
           "arguments of the VAE as TOML or JSON, if neither its file nor a config.toml beside it "
           "has them")
      .type_name("FILE");
  group
      .add("--vae-weights", o.vae_weights,
           "weights of the VAE to use: ema or model; default: the moving average if there is one")
      .one_of({"ema", "model"});
  group.add("--dim", model.dim, "number of channels of the transformers").required();
  group.add("--max-video-frames", model.max_video_frames, "number of frames of a clip");
  group.add("--text-num-tokens", model.text_num_tokens,
            "size of the text vocabulary; 0: that of the tokenizer");
  group.add("--text-max-seq-len", model.text_max_seq_len, "maximum number of tokens of a text");
  group.add("--text-enc-depth", model.text_enc_depth, "number of layers of the text encoder");
  group.add("--text-enc-dim-head", model.text_enc_dim_head,
            "number of channels per attention head of the text encoder");
  group.add("--text-enc-heads", model.text_enc_heads,
            "number of attention heads of the text encoder");
  group.add("--text-rotary-pos-emb", model.text_rotary_pos_emb,
            "rotary position embedding of texts; false: absolute positions");
  group.add("--enc-reversible", model.enc_reversible,
            "reversible text encoder (two streams); Python cannot run it otherwise");
  group.add("--dec-depth", model.dec_depth, "number of layers of the video decoder");
  group.add("--dec-dim-head", model.dec_dim_head,
            "number of channels per attention head of the video decoder");
  group.add("--dec-heads", model.dec_heads, "number of attention heads of the video decoder");
  group.add("--dec-reversible", model.dec_reversible, "reversible video decoder (two streams)");
  group.add("--attn-dropout", model.attn_dropout, "dropout probability in attention layers")
      .range(0.0, 0.99);
  group.add("--ff-dropout", model.ff_dropout, "dropout probability in feed-forward layers")
      .range(0.0, 0.99);
  group.add("--embed-gradient-frac", model.embed_gradient_frac,
            "fraction of the gradient that reaches the embedding tables");
  group.add("--shift-video-tokens", model.shift_video_tokens,
            "shift part of the channels from the token above, to the left and before");
  group.add("--sparse-3dna-kernel-size", o.kernel,
            "neighbourhood that a code attends to: one odd number, or time, height and width");
  group.add("--sparse-3dna-dilation", model.sparse_3dna_dilation,
            "dilation of the neighbourhood: n cycles through 1 to n by layer; several: these in "
            "turn");
  group.add("--sparse-3dna-rel-pos-bias", model.sparse_3dna_rel_pos_bias,
            "learned attention bias by relative position");
  group.add("--sparse-3dna-query-num-frames-chunk", model.sparse_3dna_query_num_frames_chunk,
            "number of frames per chunk of attention, to save memory; 0: all frames at once");
  group
      .add("--weights", o.weights,
           "weights to start from: a nuwa.<step>.pt or checkpoint, of Millrace or of Python")
      .type_name("FILE");
}

void add_stage_options(const Options& options, NuwaTrainOptions& o) {
  Options group = options.group("Losses and samples");
  NuwaStageOptions& stage = o.stage;
  group.add("--max-grad-norm", stage.max_grad_norm, "maximum gradient norm; 0: no clipping")
      .non_negative();
  group
      .add("--cond-dropout-prob", stage.cond_dropout_prob,
           "probability that the text is dropped in training, for classifier-free guidance")
      .range(0.0, 1.0);
  group
      .add("--num-sampled-frames", o.num_sampled_frames,
           "number of frames of a sample; 0: as many as a clip has")
      .non_negative();
  group.add("--prompts", stage.prompts,
            "texts to make samples of, shown side by side; default: the first text of the "
            "validation set");
  group.add("--cond-scale", stage.generate.cond_scale,
            "scale of classifier-free guidance in samples; 1: no guidance");
  group
      .add("--filter-thres", stage.generate.filter_thres,
           "fraction of the least likely codes that sampling excludes")
      .range(0.0, 1.0);
  group.add("--temperature", stage.generate.temperature, "sampling temperature of the samples")
      .positive();
  group.flag("--compat", stage.compat,
             "compute as the Python package does: its guidance fault, operations in its order; "
             "slower");
}

}  // namespace
}  // namespace millrace

int main(int argc, char** argv) {
  using namespace millrace;
  CommandLine line(
      "train_nuwa",
      "Trains NUWA, which generates videos from texts: a transformer predicts the codes "
      "of a video one by one, and a trained VAE decodes them to frames.",
      examples);
  NuwaTrainOptions values;
  values.model.text_num_tokens = 0;
  const Options options = line.options();
  add_train_options(options, values.train, names);
  add_data_options(options, values);
  add_model_options(options, values);
  add_stage_options(options, values);
  return line.run(argc, argv, [&] { return run_trainer("millrace_train_nuwa", options, &values); });
}
