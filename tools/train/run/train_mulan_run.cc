// Runs train_mulan: makes data set, model and stage from its options.
#include "tools/train/mulan_options.h"
#include "tools/train/run/train_run.h"

#include <millrace/datasets/arrow/arrow_dataset.h>
#include <millrace/datasets/compose/audio_text_pairs.h>
#include <millrace/datasets/compose/collations.h>
#include <millrace/datasets/listing/file_bytes.h>
#include <millrace/pipeline/base/error.h>
#include <millrace/training/checkpoint/weights.h>
#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/module/module_tensors.h>
#include <millrace/training/models/mulan/mulan_stage.h>

#include <algorithm>

#include <c10/util/StringUtil.h>

namespace millrace {
namespace {

[[noreturn]] void refuse(const std::string& why) {
  throw Error(why).kind(ErrorKind::usage);
}

std::shared_ptr<const Tokenizer> tokenizer_of(const std::string& merges) {
  if (merges.empty()) return byte_tokenizer();
  FileBytes file;
  std::unique_ptr<const Tokenizer> tokenizer;
  Status status = file.read(merges);
  if (status.ok()) status = load_bpe(file.bytes(), {}, tokenizer);
  if (!status.ok()) throw status.error().at(merges).kind(ErrorKind::usage);
  return tokenizer;
}

MulanConfig model_of(const MulanTrainOptions& o, const Tokenizer& tokenizer) {
  MulanConfig model = o.model;
  model.audio.patch_size = {o.patch_size.front(), o.patch_size.back()};
  if (o.spec_hop_length > 0) model.audio.spec_hop_length = o.spec_hop_length;
  if (o.hierarchical_layers > 0) {
    model.hierarchical_contrastive_loss_layers = o.hierarchical_layers;
  }
  model.text.num_tokens = o.num_tokens > 0 ? o.num_tokens : tokenizer.vocabulary();
  if (model.text.num_tokens < tokenizer.vocabulary()) {
    refuse(c10::str("--text-num-tokens (", model.text.num_tokens,
                    ") is less than the tokenizer has (", tokenizer.vocabulary(), ")"));
  }
  model.check();
  return model;
}

// Checks the options before anything is read or written.
void check_options(const MulanTrainOptions& o, const MulanConfig& model) {
  if (o.train.batch_size < 2) {
    refuse("--batch-size must be at least 2: a sound is contrasted with the texts of other sounds");
  }
  if (o.train.clear && o.train.resume) {
    refuse("--force-clear-prev-results and --resume exclude each other");
  }
  const std::int64_t fewest = model.audio.fewest_samples();
  if (o.data_max_length > 0 && o.data_max_length < fewest && !model.audio.accept_spec) {
    refuse(c10::str("--data-max-length must be at least ", fewest,
                    " for one column of patches, but is ", o.data_max_length));
  }
}

// The pairs with random windows, and with the first window for validation.
struct Pairs {
  AnyDataset augmented, plain;
};

Pairs pairs_of(const MulanTrainOptions& o, const MulanConfig& model,
               const CaptionOptions& captions) {
  // Sounds are cut to the shortest of a batch, so a sound that is too short would spoil the batch.
  std::int64_t fewest = o.data_max_length > 0 ? 1 : model.audio.fewest_samples();
  if (model.audio.accept_spec) fewest = model.audio.patch_size[1];
  const std::filesystem::path path = o.train.folder;
  if (path.extension() == ".arrow") {
    auto from_arrow = [&](AudioWindow window) {
      return AudioTextPairs(ArrowDataset(path),
                            {.spectrograms = model.audio.accept_spec,
                             .times = model.audio.accept_spec_time_first ? 0 : 1,
                             .samples = o.data_max_length,
                             .min_samples = fewest,
                             .window = window,
                             .captions = captions});
    };
    return {from_arrow(AudioWindow::random), from_arrow(AudioWindow::first)};
  }
  if (model.audio.accept_spec) {
    refuse("--accept-spec needs spectrograms: an Arrow file with a column audio of two axes");
  }
  auto from_folder = [&](AudioWindow window) {
    return AudioFolder(path, {.sample_rate_hz = o.sample_rate_hz,
                              .samples = o.data_max_length,
                              .min_samples = fewest,
                              .window = o.data_max_length > 0 ? window : AudioWindow::first,
                              .text = o.table.empty() ? TextBeside::required : TextBeside::none,
                              .table = o.table,
                              .path_column = o.path_column,
                              .caption_column = o.caption_column,
                              .captions = captions});
  };
  return {from_folder(AudioWindow::random), from_folder(AudioWindow::first)};
}

// Whole sounds are cut to the shortest of a batch; captions are never cut.
Collations collations(const MulanConfig& model, const Schema& schema) {
  Collations found = collate_audio(schema, AudioLength::shortest, model.text.pad_id);
  const int times = model.audio.accept_spec && model.audio.accept_spec_time_first ? 0 : 1;
  if (model.audio.accept_spec && found.contains("audio")) {
    found["audio"] = Collate::curtail_to_shortest(times);
  }
  return found;
}

void check_pairs(const MulanTrainOptions& o, std::int64_t pairs, int world) {
  TrainOptions all = o.train;
  all.batch_size *= world;  // a step needs a whole batch on every rank
  check_sizes(all, pairs);
}

int train(const Options& flags, MulanTrainOptions& o, const ProcessContext& context) {
  const std::shared_ptr<const Tokenizer> tokenizer = tokenizer_of(o.bpe);
  const MulanConfig model = model_of(o, *tokenizer);
  check_options(o, model);
  if (o.use_lion) o.train.optimizer = "lion";
  o.stage.optimizer = optimizer_options(o.train);
  o.stage.device = context.device();
  o.stage.seed = o.train.seed;
  o.stage.sample_rate_hz = o.sample_rate_hz;
  o.stage.data_max_length = o.data_max_length;
  o.stage.contrasted = o.train.batch_size * context.world();
  const Pairs pairs = pairs_of(o, model,
                               {.tokenizer = tokenizer,
                                .max_tokens = model.text.max_seq_len,
                                .truncate = o.truncate_captions,
                                .pad_id = static_cast<std::int32_t>(model.text.pad_id)});
  check_pairs(o, pairs.augmented->size(), context.world());
  if (o.train.num_train_steps == 0) o.train.num_train_steps = pairs.augmented->size();
  MulanStage stage(model, o.stage);
  if (!o.weights.empty()) load_weights(o.weights, state_tensors(stage.model()));
  const RunFolder folder = open_run_folder(flags, o.train, context);
  // As in Python, an incomplete batch is dropped: contrasting fewer pairs is an easier task.
  TrainingData data(o.train, context, pairs.augmented, pairs.plain,
                    {.tail = Tail::drop, .collate = collations(model, pairs.plain->schema())});
  Scheduler scheduler(stage, data.train, data.valid ? &*data.valid : nullptr, folder,
                      scheduler_options(o.train, context));
  return run(flags, o.train, context, folder, scheduler);
}

}  // namespace
}  // namespace millrace

extern "C" __attribute__((visibility("default"))) int millrace_train_mulan(
    const millrace::Options* flags, void* values) {
  using namespace millrace;
  auto& asked = *static_cast<MulanTrainOptions*>(values);
  asked.train.clear = asked.train.clear || asked.force_clear_prev_results;
  return run_guarded([&] {
    return run_in_context(
        asked.train, [&](const ProcessContext& context) { return train(*flags, asked, context); });
  });
}
