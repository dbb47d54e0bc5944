#include "tools/preprocess/media.h"

#include <millrace/datasets/folders/audio_folder.h>

#include <cmath>

#include <CLI/CLI.hpp>

namespace millrace {

namespace {

class Audio : public Medium {
 public:
  const char* name() const override { return "audio"; }
  const char* about() const override {
    return "Sounds (wav, flac, mp3, ogg, opus, m4a) as float32 in [-1, 1]: whole, or windows of "
           "one length at one rate.";
  }
  const char* examples() const override {
    return R"(
Examples:
  preprocess audio songs/ --out songs.arrow --rate 24000 --mono               # whole, as lists
  preprocess audio songs/ --out songs.npy --rate 24000 --seconds 4 --mono     # windows of 4 s
  preprocess audio songs/ --out songs.arrow --rate 24000 --mono --text required
  preprocess audio songs/ --out songs.arrow --rate 24000 --mono --table captions.csv
In Arrow the field valid_samples tells how much of a window is sound; the rest is silence.
)";
  }
  void declare(CLI::App& app) override;
  Job make(const RunOptions& options, const std::shared_ptr<Pool>& pool) override;

 private:
  std::string input_, text_ = "none", table_, window_ = "first";
  int rate_ = 0, channels_ = 0;
  double seconds_ = 0, max_seconds_ = 0;
  bool mono_ = false;
  StoreOptions store_;
};

void Audio::declare(CLI::App& app) {
  app.add_option("folder,--folder", input_, "the sounds")->required()->type_name("FOLDER");
  app.add_option("--rate", rate_, "samples per second; 0: each file's own")
      ->check(CLI::Range(0, 384'000))
      ->capture_default_str();
  app.add_option("--seconds", seconds_, "windows of this length; without it whole files")
      ->check(CLI::PositiveNumber);
  app.add_option("--max-seconds", max_seconds_, "cut whole files that are longer")
      ->check(CLI::PositiveNumber);
  app.add_option("--window", window_, "first, or random (from anywhere it fits)")
      ->check(CLI::IsMember({"first", "random"}))
      ->capture_default_str();
  auto* mono = app.add_flag("--mono", mono_, "mix all channels to one");
  app.add_option("--channels", channels_, "0: each file's own")
      ->check(CLI::Range(0, 8))
      ->capture_default_str()
      ->excludes(mono);
  app.add_option("--text", text_, "the text beside each: none, optional or required")
      ->check(CLI::IsMember({"none", "optional", "required"}))
      ->capture_default_str();
  app.add_option("--table", table_, "captions from a CSV or JSON-lines file (path, caption)")
      ->type_name("FILE");
  declare_store(app, store_);
}

Job Audio::make(const RunOptions& run, const std::shared_ptr<Pool>& pool) {
  if ((seconds_ > 0 || max_seconds_ > 0) && rate_ == 0) {
    throw Error("--seconds and --max-seconds need --rate, e.g. --rate 24000")
        .kind(ErrorKind::usage);
  }
  AudioFolderOptions options;
  options.sample_rate_hz = rate_;
  options.channels = mono_ ? 1 : channels_;
  options.samples = std::llround(seconds_ * rate_);
  options.max_samples = std::llround(max_seconds_ * rate_);
  options.window = window_ == "first" ? AudioWindow::first : AudioWindow::random;
  options.text = text_ == "none"       ? TextBeside::none
                 : text_ == "optional" ? TextBeside::optional
                                       : TextBeside::required;
  options.table = table_;
  options.files = listing(pool);
  auto folder = std::make_shared<AudioFolder>(input_, options);
  auto path = [folder](std::int64_t i) { return folder->path(i); };
  auto text = [folder, beside = text_ != "none" && table_.empty()](std::int64_t i) {
    return beside ? folder->path(i).replace_extension(".txt") : std::filesystem::path();
  };
  Job job{.what = "sounds",
          .data = folder,
          .source = paired_sources(input_, path, text),
          .options = {{"medium", "audio"},
                      {"rate", std::to_string(rate_)},
                      {"channels", std::to_string(options.channels)},
                      {"samples", std::to_string(options.samples)},
                      {"max_samples", std::to_string(options.max_samples)},
                      {"window", window_},
                      {"text", table_.empty() ? text_ : "table"}}};
  if (window_ == "random") job.options["seed"] = std::to_string(run.seed);
  job.main_field = "audio";
  if (store_.encoded()) {
    job.data = keep_encoded(job.data, path, "audio", store_);
    job.binary = {"audio"};
    job.options["store"] = "encoded";
    job.options["check"] = store_.check;
  }
  job.varying_shard_rows = 64;
  return job;
}

}  // namespace

std::unique_ptr<Medium> audio_medium() {
  return std::make_unique<Audio>();
}

}  // namespace millrace
