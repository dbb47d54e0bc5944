#include "tools/preprocess/media.h"

#include <millrace/datasets/folders/audio_folder.h>

#include <cmath>

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
In Arrow the field valid_samples is the number of samples that are not padding.
)";
  }
  void declare(const Options& options) override;
  Job make(const RunOptions& options, const std::shared_ptr<Pool>& pool) override;

 private:
  std::string input_, text_ = "none", table_, window_ = "first";
  int rate_ = 0, channels_ = 0;
  double seconds_ = 0, max_seconds_ = 0;
  bool mono_ = false;
  StoreOptions store_;
};

void Audio::declare(const Options& options) {
  options.add("folder,--folder", input_, "folder with the sounds; subfolders are included")
      .required()
      .type_name("FOLDER");
  options.add("--rate", rate_, "sample rate in Hz to resample to; 0: as each file has it")
      .range(0, 384'000);
  options
      .add("--seconds", seconds_,
           "length of the window taken from each file, in seconds; default: whole files")
      .positive()
      .default_text("");
  options
      .add("--max-seconds", max_seconds_,
           "maximum length of whole files, in seconds; longer files are cut; default: no limit")
      .positive()
      .default_text("");
  options.add("--window", window_, "where the window lies: first (the start of the file) or random")
      .one_of({"first", "random"});
  Option mono = options.flag("--mono", mono_, "mix all channels down to one");
  options.add("--channels", channels_, "number of channels; 0: as each file has them")
      .range(0, 8)
      .excludes(mono);
  options
      .add("--text", text_,
           "text file beside each sound (a.mp3 and a.txt): none, optional or required")
      .one_of({"none", "optional", "required"});
  options
      .add("--table", table_,
           "table of captions by path, instead of text files: CSV or JSON lines with the "
           "columns path and caption")
      .type_name("FILE");
  declare_store(options, store_);
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
