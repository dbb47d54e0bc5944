// Media to tokens: a stage between the decoders and the cache.
#include "tools/inspect/probe.h"
#include "tools/preprocess/media.h"
#include "tools/preprocess/tokenizing.h"

#include <millrace/datasets/image_folder.h>
#include <millrace/datasets/token_stage.h>
#include <millrace/datasets/video_folder.h>

namespace millrace {

namespace {

class Tokens : public Medium {
 public:
  const char* name() const override { return "tokens"; }
  const char* about() const override {
    return "Pictures or clips to tokens. --model is a codebook of patches in an .npy file, float32 "
           "[entries, patch * patch * channels] over pixels in [0, 1].";
  }
  const char* examples() const override {
    return R"(
Examples:
  preprocess tokens photos/ --model codebook.npy --out tokens.npy --size 256
  preprocess tokens clips/ --model codebook.npy --out tokens.npy --frames 17 --size 128
  preprocess tokens photos/ --model codebook.npy --out tokens.npy --dtype int64
)";
  }
  void declare(CLI::App& app) override;
  Job make(const RunOptions& options, const std::shared_ptr<Pool>& pool) override;

 private:
  Job pictures(const std::shared_ptr<Pool>& pool) const;
  Job clips(const std::shared_ptr<Pool>& pool) const;

  std::string input_, model_, size_ = "256", medium_ = "auto", dtype_;
  std::int64_t frames_ = 17, patch_ = 0, patch_frames_ = 1;
  int channels_ = 3;
};

void Tokens::declare(CLI::App& app) {
  app.add_option("folder,--folder", input_, "the pictures or clips")
      ->required()
      ->type_name("FOLDER");
  app.add_option("--model", model_, "what makes tokens of them")->required()->type_name("FILE");
  app.add_option("--medium", medium_, "images or videos; by default what the folder has")
      ->check(CLI::IsMember({"auto", "images", "videos"}))
      ->capture_default_str();
  app.add_option("--size", size_, "256, or 480x640 (height x width)")->capture_default_str();
  app.add_option("--channels", channels_, "1 grey, 3 RGB")
      ->check(CLI::IsMember({1, 3}))
      ->capture_default_str();
  app.add_option("--frames", frames_, "of a clip")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--patch", patch_, "pixels of a patch; 0: as the codebook's vectors are long")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--patch-frames", patch_frames_, "frames of a patch")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--dtype", dtype_, "of the tokens; by default the smallest that fits");
}

Job Tokens::pictures(const std::shared_ptr<Pool>& pool) const {
  ImageFolder folder(input_,
                     {.size = parse_size(size_), .channels = channels_, .files = listing(pool)});
  Job job{.what = "images",
          .data = folder,
          .source = sources_of(folder.files()),
          .options = {{"medium", "images"}}};
  job.stage_field = job.main_field = "image";
  return job;
}

Job Tokens::clips(const std::shared_ptr<Pool>& pool) const {
  VideoFolder folder(input_, {.frames = frames_,
                              .size = parse_size(size_),
                              .channels = channels_,
                              .files = listing(pool)});
  Job job{.what = "videos",
          .data = folder,
          .source = sources_of(folder.files()),
          .options = {{"medium", "videos"}, {"frames", std::to_string(frames_)}}};
  job.stage_field = job.main_field = "video";
  return job;
}

Job Tokens::make(const RunOptions&, const std::shared_ptr<Pool>& pool) {
  if (model_.ends_with(".pt") || model_.ends_with(".ckpt") || model_.ends_with(".safetensors")) {
    throw Error(
        "trained models (train_vqgan, train_video_tokenizer) cannot be read yet: they come "
        "with those trainers")
        .at(model_)
        .kind(ErrorKind::usage)
        .hint("A codebook of patches in an .npy file works today, see: preprocess tokens --help");
  }
  auto stage = load_codebook(model_, {.patch = patch_,
                                      .channels = channels_,
                                      .frames = patch_frames_,
                                      .threads = pool->threads()});
  bool videos = medium_ == "videos";
  if (medium_ == "auto") {
    FileList files(input_, listing(pool));
    std::int64_t clips = 0, images = 0;
    for (std::int64_t i = 0; i < files.size(); ++i) {
      MediaKind kind = kind_of(files.name(i));
      clips += kind == MediaKind::video ? 1 : 0;
      images += kind == MediaKind::image ? 1 : 0;
    }
    if (clips > 0 && images > 0) {
      throw Error(
          "the folder has pictures and clips; say which: --medium images or --medium videos")
          .at(input_)
          .kind(ErrorKind::usage);
    }
    videos = clips > 0;
  }
  Job job = videos ? clips(pool) : pictures(pool);
  job.stage = stage;
  job.stage_dtype = token_dtype(dtype_, stage->vocabulary());
  job.options["size"] = to_string(parse_size(size_));
  job.options["channels"] = std::to_string(channels_);
  job.options["model"] = stage->name();
  job.options["weights"] = stage->hash();
  job.options["vocabulary"] = std::to_string(stage->vocabulary());
  return job;
}

}  // namespace

std::unique_ptr<Medium> tokens_medium() {
  return std::make_unique<Tokens>();
}

}  // namespace millrace
