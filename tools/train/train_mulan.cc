// Trains MuLaN on sounds with captions.
#include "tools/train/mulan_options.h"

#include <string>

namespace millrace {
namespace {

constexpr const char* examples = R"(
Examples:
  train_mulan songs --batch-size 32 --data-max-length 160000 --num-train-steps 50000
  train_mulan songs --table captions.csv --batch-size 32 ...  # columns path and caption
  train_mulan pairs.arrow --batch-size 32 ...                 # columns audio and caption (or tokens)
  train_mulan --config results/config.toml --resume           # go on where it was stopped
  torchrun --no-python --nproc-per-node 2 train_mulan songs --batch-size 16 ...

A folder holds sounds of any format, rate and number of channels, each with its caption beside it
(a.mp3 and a.txt), or a table names them: CSV, JSON lines or Arrow. Of each sound a step sees
--data-max-length samples from anywhere in it; what is shorter ends in silence. Captions are never
cut to the length of sounds. With ranks, every sound is contrasted with the texts of all ranks: 2
ranks with batches of 16 train as one process with batches of 32.

What it leaves in the results folder:
  mulan.<step>.pt                   {model, optim}, which the trainer in Python loads, and the
                                    model's configuration: preprocess tokens --model takes it
  retrieval.<step>.txt              captions of a validation batch, and which its sounds are near
  checkpoint.<steps>.pt             all that --resume needs; Python reads it too
  metrics.jsonl, events.out.*       what was logged, with the retrieval accuracy over all that is
                                    held out; tensorboard --logdir results
  config.toml                       every option, for --config
  errors.jsonl                      files that could not be read
)";

void add_data_options(CLI::App& app, MulanTrainOptions& o) {
  auto add = [&](const char* name, auto& value, const char* text) {
    return declare(app, name, value, text, "Data");
  };
  add("--data-max-length", o.data_max_length,
      "samples of a sound that a step sees, from a random place; 0: whole sounds, cut to the "
      "shortest of the batch")
      ->check(CLI::NonNegativeNumber);
  add("--sample-rate", o.sample_rate_hz, "Hz: sounds are resampled to it, and mixed to one channel")
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--table", o.table, "captions by path, instead of texts beside the sounds")
      ->type_name("FILE")
      ->group("Data");
  add("--path-column", o.path_column, "of the table: paths below the folder");
  add("--caption-column", o.caption_column, "of the table");
  app.add_option("--bpe", o.bpe, "merges in CLIP's format; without, every byte is a token")
      ->type_name("FILE")
      ->group("Data");
  add("--truncate-captions", o.truncate_captions,
      "cut captions of more than --text-max-seq-len tokens; false: such a pair is a bad one");
}

void add_transformer_options(CLI::App& app, MulanTransformerConfig& c, const std::string& prefix,
                             const char* group) {
  auto add = [&](const char* name, auto& value, const char* text) {
    declare(app, ("--" + prefix + name).c_str(), value, text, group);
  };
  add("dim", c.dim, "of the transformer");
  add("depth", c.depth, "its layers");
  add("dim-head", c.dim_head, "of a head of attention");
  add("heads", c.heads, "how many");
  add("attn-dropout", c.attn_dropout, "of attention");
  add("ff-mult", c.ff_mult, "width of the networks between, in dims");
  add("ff-dropout", c.ff_dropout, "in them");
}

void add_audio_options(CLI::App& app, MulanTrainOptions& o) {
  const char* group = "Sounds";
  auto add = [&](const char* name, auto& value, const char* text) {
    return declare(app, name, value, text, group);
  };
  MulanAudioConfig& audio = o.model.audio;
  add_transformer_options(app, audio, "audio-", group);
  add("--patch-size", o.patch_size, "of a spectrogram: one number, or frequencies and times")
      ->expected(1, 2);
  add("--patch-dropout-prob", audio.patch_dropout_prob, "of patches that a step does not see");
  add("--accept-spec", audio.accept_spec, "the data set has spectrograms instead of sounds");
  add("--accept-spec-time-first", audio.accept_spec_time_first, "theirs: [times, frequencies]");
  add("--spec-n-fft", audio.spec_n_fft, "of a spectrogram: half as many frequencies, and one");
  add("--spec-win-length", audio.spec_win_length, "samples of a window");
  add("--spec-hop-length", o.spec_hop_length, "from window to window; 0: half a window")
      ->check(CLI::NonNegativeNumber);
  add("--spec-power", audio.spec_power, "of the magnitude: 1 or 2");
  add("--spec-pad", audio.spec_pad, "samples of silence at both ends");
  add("--spec-center", audio.spec_center, "windows are centred, so that the ends count");
  add("--spec-pad-mode", audio.spec_pad_mode, "what is beyond the ends then")
      ->check(CLI::IsMember({"reflect", "constant", "replicate", "circular"}));
  add("--spec-augment", o.model.spec_augment, "false: without the masks");
  add("--spec-aug-freq-mask", audio.spec_aug_freq_mask,
      "a band of at most so many frequencies is hidden; all of them, if it is more than there are");
  add("--spec-aug-time-mask", audio.spec_aug_time_mask, "and so many times");
  add("--spec-aug-stretch-factor", audio.spec_aug_stretch_factor,
      "without effect, as in the package");
}

void add_model_options(CLI::App& app, MulanTrainOptions& o) {
  auto add = [&](const char* name, auto& value, const char* text, const char* group = "Model") {
    return declare(app, name, value, text, group);
  };
  add_transformer_options(app, o.model.text, "text-", "Texts");
  add("--text-num-tokens", o.num_tokens, "of the vocabulary; 0: as many as the tokenizer has",
      "Texts")
      ->check(CLI::NonNegativeNumber);
  add("--text-max-seq-len", o.model.text.max_seq_len, "tokens of a caption at most", "Texts");
  add("--text-pad-id", o.model.text.pad_id, "the token that fills captions up", "Texts");
  add("--dim-latent", o.model.dim_latent, "of the space that sounds and texts share");
  add("--decoupled-contrastive-learning", o.model.decoupled_contrastive_learning,
      "a pair is not among what it is contrasted with");
  add("--sigmoid-contrastive-loss", o.model.sigmoid_contrastive_loss, "every pair for itself");
  add("--hierarchical-contrastive-loss", o.model.hierarchical_contrastive_loss,
      "contrast layers in between, too");
  add("--hierarchical-contrastive-loss-layers", o.hierarchical_layers, "so many; 0: all but one")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--weights", o.weights,
                 "start from these: a mulan.<step>.pt or checkpoint, of here or of the trainer in "
                 "Python, or a state_dict")
      ->type_name("FILE")
      ->group("Model");
}

void add_stage_options(CLI::App& app, MulanTrainOptions& o) {
  declare(app, "--max-grad-norm", o.stage.max_grad_norm, "clips the gradients; 0: not", "Optimizer")
      ->check(CLI::NonNegativeNumber);
  app.add_flag("--use-lion", o.use_lion, "short for --optimizer lion")->group("Optimizer");
  app.add_flag("--force-clear-prev-results", o.force_clear_prev_results, "the same as --clear")
      ->group("Results");
}

}  // namespace
}  // namespace millrace

int main(int argc, char** argv) {
  using namespace millrace;
  CommandLine line("train_mulan",
                   "Trains MuLaN on sounds with captions: two encoders that bring a sound and a "
                   "text that describes it to the same place.",
                   examples);
  MulanTrainOptions options;
  add_train_options(line.app(), options.train, {.average = false});
  line.app()
      .get_option("--num-train-steps")
      ->required(false)
      ->description("how long to train; by default as many steps as there are pairs");
  add_data_options(line.app(), options);
  add_stage_options(line.app(), options);
  add_audio_options(line.app(), options);
  add_model_options(line.app(), options);
  return line.run(argc, argv,
                  [&] { return run_trainer("millrace_train_mulan", line.app(), &options); });
}
