// Runs train_mesh_transformer: makes data set, model and stage from its options.
#include "tools/preprocess/tokens/model_weights.h"
#include "tools/train/mesh_transformer_options.h"
#include "tools/train/run/train_run.h"

#include <millrace/datasets/arrow/arrow_dataset.h>
#include <millrace/datasets/caches/cache_info.h>
#include <millrace/pipeline/base/error.h>
#include <millrace/pipeline/base/log.h>
#include <millrace/training/checkpoint/checkpoint.h>
#include <millrace/training/checkpoint/tensors.h>
#include <millrace/training/checkpoint/weights.h>
#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/mesh_autoencoder/mesh_autoencoder.h>
#include <millrace/training/models/mesh_transformer/mesh_transformer_stage.h>
#include <millrace/training/models/module/module_tensors.h>

#include <algorithm>

#include <c10/util/StringUtil.h>
#include <nlohmann/json.hpp>

namespace millrace {
namespace {

constexpr const char* codes_column = "tokens";

[[noreturn]] void refuse(const std::string& why) {
  throw Error(why).kind(ErrorKind::usage);
}

// Parses name=value ...; the values are JSON.
nlohmann::json attention_arguments(const std::vector<std::string>& pairs) {
  nlohmann::json object = nlohmann::json::object();
  for (const std::string& pair : pairs) {
    const std::size_t equals = pair.find('=');
    const auto value = equals == std::string::npos
                           ? nlohmann::json(nlohmann::json::value_t::discarded)
                           : nlohmann::json::parse(pair.substr(equals + 1), nullptr, false);
    if (value.is_discarded()) {
      refuse(c10::str("--attn-kwargs: cannot read '", pair, "'; it is to be like ff_glu=true"));
    }
    object[pair.substr(0, equals)] = value;
  }
  return object;
}

TokenModelOptions autoencoder_options(const MeshTransformerTrainOptions& o) {
  return {.model = o.autoencoder, .config = o.autoencoder_config, .weights = o.autoencoder_weights};
}

MeshAutoencoder open_autoencoder(const MeshTransformerTrainOptions& o) {
  const TokenModelOptions options = autoencoder_options(o);
  const Value saved = read_model(options.model);
  const std::string defaults = MeshAutoencoderConfig{}.to_json();
  MeshAutoencoder autoencoder(
      MeshAutoencoderConfig::from_json(model_configuration(saved, options, defaults)));
  copy_tensors(model_weights(saved, options), state_tensors(*autoencoder), options.model.string());
  autoencoder->eval();
  return autoencoder;
}

// Fills in what follows from the autoencoder's configuration.
MeshTransformerConfig sized(const MeshTransformerTrainOptions& o,
                            const MeshAutoencoderConfig& autoencoder) {
  MeshTransformerConfig model = o.model;
  model.codebook_size = autoencoder.codebook_size;
  model.num_quantizers = autoencoder.num_quantizers;
  model.quads = autoencoder.quads;
  model.pad_id = autoencoder.pad_id;
  model.autoencoder = autoencoder.to_json();
  const std::int64_t each = model.codes_of_face();
  if (model.max_seq_len == 0) model.max_seq_len = 8192 / each * each;
  return model;
}

// `text_channels`: channels of the text embeddings; 0: none, or made by the built-in encoder.
MeshTransformerConfig model_of(const MeshTransformerTrainOptions& o,
                               const MeshAutoencoderConfig& autoencoder,
                               std::int64_t text_channels) {
  MeshTransformerConfig model = sized(o, autoencoder);
  if (model.condition_on_text && text_channels == 0) model.text_encoder = o.text_encoder;
  if (model.dim_text == 0) model.dim_text = text_channels > 0 ? text_channels : model.dim;
  if (text_channels > 0 && model.dim_text != text_channels) {
    refuse(c10::str("--dim-text is ", model.dim_text, ", but the texts have ", text_channels,
                    " channels"));
  }
  nlohmann::json whole = nlohmann::json::parse(model.to_json());
  whole["attn_kwargs"] = attention_arguments(o.attn_kwargs);
  return MeshTransformerConfig::from_json(whole.dump());
}

bool is_code_cache(const std::string& path) {
  if (!path.ends_with(".arrow") && !path.ends_with(".feather")) return false;
  return read_cache_info(path).schema.find(codes_column) >= 0;
}

// Refuses codes that another autoencoder made.
void check_weights(const MeshTransformerTrainOptions& o) {
  const CacheInfo info = read_cache_info(o.train.folder);
  auto made_with = info.options.find("weights");
  if (made_with == info.options.end()) {
    log(LogLevel::warning, c10::str(o.train.folder, ": does not say which autoencoder made it"));
    return;
  }
  const int threads = torch::get_num_threads();  // the tokenizers library sets it to 1
  const std::string given = open_token_model(autoencoder_options(o))->hash();
  torch::set_num_threads(threads);
  if (made_with->second == given) return;
  throw Error(c10::str("was made by an autoencoder with other weights (", made_with->second,
                       ") than ", o.autoencoder, " has (", given, ")"))
      .at(o.train.folder)
      .hint("Make the codes again with this one: preprocess tokens MESHES --model " + o.autoencoder)
      .kind(ErrorKind::usage);
}

// The training data, and the names of its fields for the stage.
struct Source {
  MeshData data;
  std::int64_t text_channels = 0;
};

std::int64_t channels_of(const AnyDataset& data, const std::string& field) {
  const Schema& schema = data->schema();
  const int at = schema.find(field);
  return at < 0 ? 0 : schema[at].shape[schema[at].shape.rank() - 1];
}

// Leaves out meshes that are too long, with a log line for each.
AnyDataset that_fit(const ArrowDataset& codes, std::int64_t longest) {
  std::vector<std::int64_t> fitting;
  std::int64_t left_out = 0;
  for (std::int64_t i = 0; i < codes.size(); ++i) {
    if (codes.length(i) <= longest) {
      fitting.push_back(i);
    } else if (++left_out <= 10) {
      log(LogLevel::warning, c10::str(codes.describe(i), ": left out: ", codes.length(i),
                                      " codes, more than --max-seq-len (", longest, ")"));
    }
  }
  if (left_out == 0) return codes;
  log(LogLevel::warning, c10::str(left_out, " meshes are too long, and left out"));
  return Subset(codes, std::move(fitting));
}

Source open_codes(MeshTransformerTrainOptions& o, const MeshAutoencoderConfig& autoencoder) {
  check_weights(o);
  const Schema schema = read_cache_info(o.train.folder).schema;
  std::vector<std::string> columns{codes_column};
  auto add = [&](const char* name) {
    if (schema.find(name) < 0) return false;
    columns.emplace_back(name);
    return true;
  };
  if (o.model.condition_on_text) {
    if (add("text_embeds")) {
      o.stage.text_embeds_field = "text_embeds";
    } else if (add("caption")) {
      o.stage.text_field = "caption";
    } else {
      refuse(o.train.folder + " has no texts: neither a column text_embeds nor a caption");
    }
  }
  o.stage.codes_field = codes_column;
  const ArrowDataset codes(o.train.folder, {.columns = columns, .length_of = codes_column});
  const AnyDataset kept = that_fit(codes, sized(o, autoencoder).max_seq_len);
  Source source{{kept, kept, {{codes_column, Collate::pad(0)}}}, 0};
  if (!o.stage.text_embeds_field.empty()) {
    source.data.collate.emplace("text_embeds", Collate::pad(0));
    source.text_channels = channels_of(kept, "text_embeds");
  }
  return source;
}

Source open_source(MeshTransformerTrainOptions& o, const MeshAutoencoderConfig& autoencoder) {
  if (is_code_cache(o.train.folder)) return open_codes(o, autoencoder);
  const MeshTransformerConfig sizes = sized(o, autoencoder);
  MeshDataOptions options = o.meshes.data;
  options.max_faces = sizes.max_seq_len / sizes.codes_of_face();
  options.text_embeds = o.text_embeds;
  options.cache = o.meshes.face_edge_cache;
  std::erase_if(options.data_kwargs,
                [](const std::string& name) { return name.starts_with("text"); });
  if (o.model.condition_on_text) {
    const bool embeds =
        !o.text_embeds.empty() || std::ranges::count(o.meshes.data.data_kwargs, "text_embeds") > 0;
    (embeds ? o.stage.text_embeds_field : o.stage.text_field) = embeds ? "text_embeds" : "texts";
    options.data_kwargs.emplace_back(embeds ? "text_embeds" : "texts");
  }
  Source source{open_meshes(o.train.folder, options), 0};
  if (!o.stage.text_embeds_field.empty()) {
    source.text_channels = channels_of(source.data.plain, "text_embeds");
  }
  return source;
}

int train(const Options& flags, MeshTransformerTrainOptions& o, const ProcessContext& context) {
  const MeshAutoencoder autoencoder = open_autoencoder(o);
  const Source source = open_source(o, autoencoder->config());
  check_sizes(o.train, source.data.plain->size());
  o.stage.optimizer = optimizer_options(o.train);
  // As the package: Adam without weight decay, else AdamW without decay of norms and biases.
  if (o.train.weight_decay > 0 && o.train.optimizer == "adam") {
    o.stage.optimizer.kind = OptimizerKind::adamw;
  }
  o.stage.device = context.device();
  o.stage.seed = o.train.seed;
  o.stage.validate_every = o.train.save_results_every;
  o.stage.last_step = o.train.num_train_steps - 1;
  o.stage.face_edges = std::ranges::count(o.meshes.data.data_kwargs, "face_edges") > 0;
  torch::manual_seed(o.train.seed);  // the same initial weights for meshes and for codes
  MeshTransformerStage stage(model_of(o, autoencoder->config(), source.text_channels), autoencoder,
                             o.stage);
  if (!o.weights.empty()) load_weights(o.weights, state_tensors(stage.model()));
  const RunFolder folder = open_run_folder(flags, o.train, context);
  TrainingData data(o.train, context, source.data.augmented, source.data.plain,
                    {.bucket = {.window = o.meshes.bucket_window}, .collate = source.data.collate});
  SchedulerOptions options = scheduler_options(o.train, context);
  options.schedule.stays_at_first_warmup_rate = o.model.compat;
  Scheduler scheduler(stage, data.train, data.valid ? &*data.valid : nullptr, folder, options);
  return run(flags, o.train, context, folder, scheduler);
}

}  // namespace
}  // namespace millrace

extern "C" __attribute__((visibility("default"))) int millrace_train_mesh_transformer(
    const millrace::Options* flags, void* values) {
  using namespace millrace;
  auto& asked = *static_cast<MeshTransformerTrainOptions*>(values);
  return run_guarded([&] {
    attention_arguments(asked.attn_kwargs);
    return run_in_context(
        asked.train, [&](const ProcessContext& context) { return train(*flags, asked, context); });
  });
}
