#include "tools/preprocess/tokens/embeddings.h"

#include "tools/preprocess/media.h"

#include <millrace/datasets/folders/audio_folder.h>
#include <millrace/pipeline/data/map.h>

#include <cmath>

namespace millrace {

namespace {

Schema schema_of(const EmbeddingModel& model) {
  return Schema{{.name = "embedding", .dtype = DType::float32, .shape = {model.dim()}},
                text_field("caption")};
}

// Sounds, with the texts beside them or in a table where there are any.
Job sounds_job(const std::string& input, const std::shared_ptr<const EmbeddingModel>& model,
               const EmbeddingOptions& options, const std::shared_ptr<Pool>& pool) {
  const int rate = options.rate > 0 ? options.rate : model->sample_rate_hz();
  if (rate == 0) {
    throw Error("the model's file does not tell the rate of its sounds; give --rate")
        .kind(ErrorKind::usage);
  }
  const std::int64_t samples =
      options.seconds > 0 ? std::llround(options.seconds * rate) : model->samples();
  AudioFolderOptions sounds;
  sounds.sample_rate_hz = rate;
  sounds.samples = samples;
  sounds.min_samples = samples > 0 ? 1 : model->fewest_samples();
  sounds.text = options.table.empty() ? TextBeside::optional : TextBeside::none;
  sounds.table = options.table;
  sounds.files = listing(pool);
  auto folder = std::make_shared<AudioFolder>(input, sounds);
  auto path = [folder](std::int64_t i) { return folder->path(i); };
  auto text = [folder, beside = options.table.empty()](std::int64_t i) {
    std::filesystem::path caption = folder->path(i).replace_extension(".txt");
    return beside && std::filesystem::exists(caption) ? caption : std::filesystem::path();
  };
  Job job{.what = "sounds",
          .data = map(AnyDataset(folder), schema_of(*model),
                      [model](const Sample& in, Sample& out, const LoadContext&) {
                        model->embed_sound(in["audio"].as<const float>(),
                                           out.out("embedding").as<float>());
                        out.set_text("caption", in.text("caption"));
                      }),
          .source = paired_sources(input, path, text),
          .options = {{"medium", "audio"},
                      {"rate", std::to_string(rate)},
                      {"samples", std::to_string(samples)},
                      {"text", options.table.empty() ? "optional" : "table"}}};
  return job;
}

Job captions_job(const std::string& input, const std::shared_ptr<const EmbeddingModel>& model,
                 const EmbeddingOptions& options, const std::shared_ptr<Pool>& pool) {
  auto embedder = std::make_shared<const TextEmbedder>(model, options.bpe);
  Job job = texts_job(input, pool);
  job.data = map(job.data, schema_of(*model),
                 [embedder](const Sample& in, Sample& out, const LoadContext&) {
                   embedder->embed(in.text("text"), out.out("embedding").as<float>());
                   out.set_text("caption", in.text("text"));
                 });
  job.options["tokenizer"] = embedder->name();
  return job;
}

}  // namespace

void declare_embeddings(const Options& options, EmbeddingOptions& values) {
  options
      .add("--seconds", values.seconds,
           "MuLaN: seconds of each sound, from its start; default: as in training")
      .positive()
      .default_text("");
  options.add("--rate", values.rate, "MuLaN: sample rate of sounds in Hz; default: as in training")
      .range(1, 384'000)
      .default_text("");
  options.add("--table", values.table, "MuLaN: table of captions by path (CSV, JSON lines, Arrow)")
      .type_name("FILE");
  options
      .add("--bpe", values.bpe,
           "MuLaN: BPE merges file that it was trained with; default: bytes as tokens")
      .type_name("FILE");
}

Job embeddings_job(const std::string& input, const std::string& medium,
                   const std::shared_ptr<const EmbeddingModel>& model,
                   const EmbeddingOptions& options, const std::shared_ptr<Pool>& pool) {
  if (medium == "images" || medium == "videos") {
    throw Error("is " + model->name() + ", which takes sounds and texts, not " + medium)
        .kind(ErrorKind::usage);
  }
  const bool texts =
      medium == "text" || (medium == "auto" && !std::filesystem::is_directory(input));
  Job job =
      texts ? captions_job(input, model, options, pool) : sounds_job(input, model, options, pool);
  job.main_field = "embedding";
  job.varying_shard_rows = 256;
  job.options["model"] = model->name();
  job.options["weights"] = model->hash();
  job.options["configuration"] = model->configuration();
  return job;
}

}  // namespace millrace
