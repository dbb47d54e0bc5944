// Videos, and GIFs with their texts.
#include "tools/preprocess/media.h"

#include <millrace/datasets/folders/gif_text_folder.h>
#include <millrace/datasets/folders/video_folder.h>

#include <map>

namespace millrace {

namespace {

// The options that videos and gifs share.
struct ClipFlags {
  std::string input, size = "128", selection = "first", short_rule = "repeat", layout = "thwc";
  std::string fit = "crop";
  std::int64_t frames = 17, stride = 1;
  double fps = 0;
  int channels = 3;
  StoreOptions store{};

  void declare(const Options& options, const char* folder_help);
  FrameChoice choice() const;
  std::map<std::string, std::string> options(const RunOptions& run, const char* medium) const;
};

void ClipFlags::declare(const Options& options, const char* folder_help) {
  options.add("folder,--folder", input, folder_help).required().type_name("FOLDER");
  options.add("--frames", frames, "number of frames of each clip; 0: all frames").non_negative();
  options.add("--size", size,
              "size of a frame in pixels: 128 or 240x320 (height x width); 0: as each file has it");
  options
      .add("--fps", fps,
           "frames per second: take the frame shown at each time; default: every frame")
      .positive()
      .default_text("");
  options
      .add("--selection", selection,
           "which frames to take: first, uniform (evenly spread) or random (a random window)")
      .one_of({"first", "uniform", "random"});
  options.add("--stride", stride, "take every n-th frame of a clip").positive();
  options
      .add("--short", short_rule,
           "fill clips with too few frames: repeat the last, black or loop; or error")
      .one_of(short_clip_rules());
  options.add("--channels", channels, "number of channels: 1 grey, 3 RGB").one_of({1, 3});
  options.add("--layout", layout, "order of the axes: thwc or cthw").one_of({"thwc", "cthw"});
  options.add("--fit", fit, "how to reach the size: crop the middle, or stretch")
      .one_of({"crop", "stretch"});
  declare_store(options, store);
}

FrameChoice ClipFlags::choice() const {
  if (fps > 0) {
    if (selection != "first" || stride != 1) {
      throw Error("--fps chooses the frames; leave out --selection and --stride")
          .kind(ErrorKind::usage);
    }
    return FrameChoice::at_fps;
  }
  if (selection == "uniform") return FrameChoice::uniform;
  return selection == "random" ? FrameChoice::random_window : FrameChoice::first;
}

std::map<std::string, std::string> ClipFlags::options(const RunOptions& run,
                                                      const char* medium) const {
  std::map<std::string, std::string> all{{"medium", medium}};
  if (store.encoded()) {
    all["store"] = "encoded";
    all["check"] = store.check;
    return all;
  }
  all["frames"] = frames == 0 ? "all" : std::to_string(frames);
  all["size"] = to_string(parse_size(size));
  all["selection"] = fps > 0 ? std::to_string(fps) + " a second" : selection;
  all["stride"] = std::to_string(stride);
  all["short"] = short_rule;
  all["channels"] = std::to_string(channels);
  all["layout"] = layout;
  all["fit"] = fit;
  if (selection == "random") all["seed"] = std::to_string(run.seed);
  return all;
}

// Both option types have the same names for the same things.
template <typename Options>
Options folder_options(const ClipFlags& flags, const std::shared_ptr<Pool>& pool) {
  Options options;
  options.frames = flags.frames;
  options.size = parse_size(flags.size);
  options.choice = flags.choice();
  options.stride = flags.stride;
  options.fps = flags.fps;
  options.fit = flags.fit == "crop" ? Fit::centre_crop : Fit::stretch;
  options.channels = flags.channels;
  options.layout = flags.layout == "thwc" ? ClipLayout::thwc : ClipLayout::cthw;
  options.short_clip = short_clip_rules().at(flags.short_rule);
  options.files = listing(pool);
  return options;
}

Job video_job(const ClipFlags& flags, const RunOptions& run, const std::shared_ptr<Pool>& pool,
              const char* medium, std::vector<std::string> extensions) {
  auto options = folder_options<VideoFolderOptions>(flags, pool);
  options.files.extensions = std::move(extensions);
  VideoFolder folder(flags.input, options);
  Job job{.what = medium,
          .data = folder,
          .source = sources_of(folder.files()),
          .options = flags.options(run, medium)};
  job.main_field = "video";
  if (flags.store.encoded()) {
    job.data = keep_encoded(job.data, path_of(folder.files()), "video", flags.store);
    job.binary = {"video"};
  }
  job.varying_shard_rows = shard_rows_for(folder.files());
  return job;
}

class Videos : public Medium {
 public:
  const char* name() const override { return "videos"; }
  const char* about() const override {
    return "Clips (mp4, mov, avi, mkv, webm, gif; any letter case, any depth) as blocks of frames. "
           "Frames are chosen by when they are shown.";
  }
  const char* examples() const override {
    return R"(
Examples:
  preprocess videos clips/ --out clips.arrow --frames 17 --size 128
  preprocess videos clips/ --out clips.npy --frames 16 --size 64 --fps 8
  preprocess videos clips/ --out clips.arrow --selection uniform --short loop
  preprocess videos clips/ --out clips.arrow --store encoded         # the encoded files
In Arrow the field valid_frames is the number of frames that are not padding; .npy has frames only.
)";
  }
  void declare(const Options& options) override {
    flags_.declare(options, "folder with the clips; subfolders are included");
  }
  Job make(const RunOptions& run, const std::shared_ptr<Pool>& pool) override {
    return video_job(flags_, run, pool, "videos", {});
  }

 private:
  ClipFlags flags_;
};

class Gifs : public Medium {
 public:
  const char* name() const override { return "gifs"; }
  const char* about() const override {
    return "GIFs with a text beside each (a.gif and a.txt). Files without a partner are listed as "
           "errors.";
  }
  const char* examples() const override {
    return R"(
Examples:
  preprocess gifs gifs/ --out gifs.arrow --frames 10 --size 64
  preprocess gifs gifs/ --out gifs.npy --no-text              # frames alone
)";
  }
  void declare(const Options& options) override {
    flags_.frames = 10;
    flags_.size = "64";
    flags_.declare(options, "folder with the GIFs and texts; subfolders are included");
    options.flag("--no-text", no_text_, "write the GIFs alone, without their texts");
  }
  Job make(const RunOptions& run, const std::shared_ptr<Pool>& pool) override {
    if (no_text_) return video_job(flags_, run, pool, "gifs", {"gif"});
    std::shared_ptr<GifTextFolder> folder = pairs(pool);
    Job job{.what = "gifs",
            .data = folder,
            .source = paired_sources(
                flags_.input, [folder](std::int64_t i) { return folder->path(i); },
                [folder](std::int64_t i) { return folder->text_path(i); }),
            .options = flags_.options(run, "gifs with texts")};
    job.main_field = "video";
    job.text_hint = "or leave the texts out with --no-text";
    if (flags_.store.encoded()) {
      auto path = [folder](std::int64_t i) { return folder->path(i); };
      job.data = keep_encoded(job.data, path, "video", flags_.store);
      job.binary = {"video"};
    }
    job.varying_shard_rows = 256;
    return job;
  }

 private:
  std::shared_ptr<GifTextFolder> pairs(const std::shared_ptr<Pool>& pool) const {
    try {
      return std::make_shared<GifTextFolder>(flags_.input,
                                             folder_options<GifTextFolderOptions>(flags_, pool));
    } catch (Error& error) {
      if (error.hint().empty()) error.hint("To do without texts: --no-text");
      throw;
    }
  }

  ClipFlags flags_;
  bool no_text_ = false;
};

}  // namespace

std::unique_ptr<Medium> videos_medium() {
  return std::make_unique<Videos>();
}
std::unique_ptr<Medium> gifs_medium() {
  return std::make_unique<Gifs>();
}

}  // namespace millrace
