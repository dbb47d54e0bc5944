// train_mulan: trains MuLaN on sounds with captions.
#include "tools/train/mulan_options.h"

#include <string>

namespace millrace {
namespace {

constexpr const char* examples = R"(
Examples:
  train_mulan songs --batch-size 32 --data-max-length 160000 --num-train-steps 50000
  train_mulan songs --table captions.csv --batch-size 32 ...  # columns path and caption
  train_mulan pairs.arrow --batch-size 32 ...                 # columns audio and caption (or tokens)
  train_mulan --config results/config.toml --resume           # continue where it was stopped
  torchrun --no-python --nproc-per-node 2 train_mulan songs --batch-size 16 ...

A folder holds sounds of any format, rate and number of channels, each with a caption beside it
(a.mp3 and a.txt) or in a table: CSV, JSON lines or Arrow. A step takes a random window of
--data-max-length samples from each sound; shorter sounds are padded with silence. Captions are never
cut to the length of sounds. With ranks, every sound is contrasted with the texts of all ranks: 2
ranks with batches of 16 train as one process with batches of 32.

Files in the results folder:
  mulan.<step>.pt                   {model, optim}, which the trainer in Python loads, and the
                                    model's configuration: preprocess tokens --model takes it
  retrieval.<step>.txt              captions of a validation batch, and the nearest ones of each
                                    sound
  checkpoint.<steps>.pt             everything that --resume needs; Python reads it too
  metrics.jsonl, events.out.*       metrics, with the retrieval accuracy on the validation
                                    set; tensorboard --logdir results
  config.toml                       every option, for --config
  errors.jsonl                      files that could not be read
)";

void add_data_options(const Options& options, MulanTrainOptions& o) {
  Options data = options.group("Data");
  data.add("--data-max-length", o.data_max_length,
           "length of the random window taken from each sound, in samples; 0: whole sounds, cut to "
           "the shortest of the batch")
      .non_negative();
  data.add("--sample-rate", o.sample_rate_hz,
           "sample rate in Hz that sounds are resampled to, mixed to one channel")
      .range(1, 1'000'000);
  data.add("--table", o.table,
           "table of captions by path (CSV, JSON lines, Arrow), instead of texts beside the sounds")
      .type_name("FILE");
  data.add("--path-column", o.path_column,
           "column of --table with the paths, relative to the folder");
  data.add("--caption-column", o.caption_column, "column of --table with the captions");
  data.add("--bpe", o.bpe,
           "BPE merges file in CLIP's format; default: every byte of a text is a token")
      .type_name("FILE");
  data.add("--truncate-captions", o.truncate_captions,
           "cut captions of more than --text-max-seq-len tokens; false: treat them as unreadable");
}

void add_transformer_options(const Options& options, MulanTransformerConfig& c,
                             const std::string& prefix) {
  const std::string of = " of the " + prefix + " encoder", flag = "--" + prefix + "-";
  options.add(flag + "dim", c.dim, "number of channels" + of);
  options.add(flag + "depth", c.depth, "number of layers" + of);
  options.add(flag + "dim-head", c.dim_head, "number of channels per attention head" + of);
  options.add(flag + "heads", c.heads, "number of attention heads" + of);
  options.add(flag + "attn-dropout", c.attn_dropout, "attention dropout probability" + of);
  options.add(flag + "ff-mult", c.ff_mult,
              "width of the feed-forward layers" + of + ", as a multiple of its channels");
  options.add(flag + "ff-dropout", c.ff_dropout, "feed-forward dropout probability" + of);
}

void add_spectrogram_options(const Options& sounds, MulanTrainOptions& o) {
  MulanAudioConfig& audio = o.model.audio;
  sounds.add("--accept-spec", audio.accept_spec,
             "data set contains spectrograms instead of sounds");
  sounds.add("--accept-spec-time-first", audio.accept_spec_time_first,
             "spectrograms of the data set are [times, frequencies]");
  sounds.add("--spec-n-fft", audio.spec_n_fft,
             "FFT size of the spectrogram, in samples; gives n / 2 + 1 frequencies");
  sounds.add("--spec-win-length", audio.spec_win_length,
             "window length of the spectrogram, in samples");
  sounds
      .add("--spec-hop-length", o.spec_hop_length,
           "distance between spectrogram windows, in samples; 0: half a window")
      .non_negative();
  sounds.add("--spec-power", audio.spec_power, "exponent of the spectrogram's magnitude: 1 or 2");
  sounds.add("--spec-pad", audio.spec_pad, "number of samples of silence added at both ends");
  sounds.add("--spec-center", audio.spec_center,
             "centre spectrogram windows on their time, padding the ends of the sound");
  sounds.add("--spec-pad-mode", audio.spec_pad_mode, "padding mode at the ends with --spec-center")
      .one_of({"reflect", "constant", "replicate", "circular"});
  sounds.add("--spec-augment", o.model.spec_augment,
             "mask random bands of the spectrogram in training (SpecAugment)");
  sounds.add("--spec-aug-freq-mask", audio.spec_aug_freq_mask,
             "maximum width of the masked frequency band; larger than the spectrogram masks all");
  sounds.add("--spec-aug-time-mask", audio.spec_aug_time_mask,
             "maximum width of the masked time band, in spectrogram columns");
  sounds.add("--spec-aug-stretch-factor", audio.spec_aug_stretch_factor,
             "accepted without effect, as in the Python package");
}

void add_audio_options(const Options& options, MulanTrainOptions& o) {
  Options sounds = options.group("Sounds");
  add_transformer_options(sounds, o.model.audio, "audio");
  sounds
      .add("--patch-size", o.patch_size,
           "size of a spectrogram patch: one number, or frequencies and times")
      .expected(1, 2);
  sounds.add("--patch-dropout-prob", o.model.audio.patch_dropout_prob,
             "fraction of patches dropped in training");
  add_spectrogram_options(sounds, o);
}

void add_model_options(const Options& options, MulanTrainOptions& o) {
  Options texts = options.group("Texts"), model = options.group("Model");
  add_transformer_options(texts, o.model.text, "text");
  texts
      .add("--text-num-tokens", o.num_tokens,
           "size of the text vocabulary; 0: that of the tokenizer")
      .non_negative();
  texts.add("--text-max-seq-len", o.model.text.max_seq_len,
            "maximum number of tokens of a caption");
  texts.add("--text-pad-id", o.model.text.pad_id, "token id that captions are padded with");
  model.add("--dim-latent", o.model.dim_latent,
            "number of dimensions of the joint embedding space");
  model.add("--decoupled-contrastive-learning", o.model.decoupled_contrastive_learning,
            "leave the positive pair out of the denominator of the contrastive loss");
  model.add("--sigmoid-contrastive-loss", o.model.sigmoid_contrastive_loss,
            "sigmoid loss of every pair instead of a softmax over the batch");
  model.add("--hierarchical-contrastive-loss", o.model.hierarchical_contrastive_loss,
            "add contrastive losses of intermediate layers");
  model
      .add("--hierarchical-contrastive-loss-layers", o.hierarchical_layers,
           "number of intermediate layers with a contrastive loss; 0: all but one")
      .non_negative();
  model
      .add("--weights", o.weights,
           "weights to start from: a mulan.<step>.pt or checkpoint of Millrace or of the Python "
           "trainer, or a state_dict")
      .type_name("FILE");
}

void add_stage_options(const Options& options, MulanTrainOptions& o) {
  Options optimizer = options.group("Optimizer");
  optimizer.add("--max-grad-norm", o.stage.max_grad_norm, "maximum gradient norm; 0: no clipping")
      .non_negative();
  optimizer.flag("--use-lion", o.use_lion, "short form of --optimizer lion");
  options.group("Results").flag("--force-clear-prev-results", o.force_clear_prev_results,
                                "the same as --clear, by the name of the Python trainer");
}

}  // namespace
}  // namespace millrace

int main(int argc, char** argv) {
  using namespace millrace;
  CommandLine line(
      "train_mulan",
      "Trains MuLaN on sounds with captions: two encoders that map a sound and the text "
      "that describes it to nearby embeddings.",
      examples);
  MulanTrainOptions values;
  const Options options = line.options();
  add_train_options(options, values.train, {.average = false});
  options.find("--num-train-steps")
      .required(false)
      .help("total number of optimizer steps; default: as many as there are pairs");
  add_data_options(options, values);
  add_stage_options(options, values);
  add_audio_options(options, values);
  add_model_options(options, values);
  return line.run(argc, argv,
                  [&] { return run_trainer("millrace_train_mulan", options, &values); });
}
