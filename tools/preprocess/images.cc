#include "tools/preprocess/media.h"

#include <millrace/datasets/folders/image_folder.h>

#include <map>

namespace millrace {

namespace {

const std::map<std::string, Filter> filters = {{"nearest", Filter::nearest},
                                               {"box", Filter::box},
                                               {"bilinear", Filter::bilinear},
                                               {"bicubic", Filter::bicubic},
                                               {"lanczos", Filter::lanczos}};
const std::map<std::string, Layout> layouts = {{"hwc", Layout::hwc}, {"chw", Layout::chw}};

class Images : public Medium {
 public:
  const char* name() const override { return "images"; }
  const char* about() const override {
    return "Pictures (jpg, jpeg, png, webp, bmp, gif; any letter case, any depth): shorter side "
           "resized, middle cropped. Pixels are Pillow's.";
  }
  const char* examples() const override {
    return R"(
Examples:
  preprocess images photos/ --out photos.npy --size 256
  preprocess images photos/ --out photos.arrow --size 256 --split train=0.95,valid=0.05
  preprocess images photos/ --out photos.arrow --store encoded       # the encoded files
  preprocess images photos/ --out photos.arrow --size 0              # each picture at its own size
  python3 -c 'import numpy; print(numpy.load("photos.npy", mmap_mode="r").shape)'
)";
  }
  void declare(const Options& options) override;
  Job make(const RunOptions& options, const std::shared_ptr<Pool>& pool) override;

 private:
  std::string input_, size_ = "256", filter_ = "bilinear", layout_ = "hwc", alpha_ = "drop";
  int channels_ = 3;
  bool fast_ = false, tolerant_ = false, no_orient_ = false;
  StoreOptions store_;
};

void Images::declare(const Options& options) {
  options.add("folder,--folder", input_, "folder with the pictures; subfolders are included")
      .required()
      .type_name("FOLDER");
  options.add("--size", size_,
              "size of a picture in pixels: 256 or 480x640 (height x width); 0: as each file has "
              "it");
  options.add("--channels", channels_, "number of channels: 1 grey, 3 RGB, 4 RGBA")
      .one_of({1, 3, 4});
  options.add("--layout", layout_, "order of the axes: hwc or chw").one_of({"hwc", "chw"});
  options.add("--filter", filter_, "resizing filter: nearest, box, bilinear, bicubic or lanczos")
      .one_of(filters);
  options
      .add("--alpha", alpha_,
           "what to do with transparency: drop the channel, or composite on white")
      .one_of({"drop", "composite"});
  options.flag("--fast", fast_,
               "decode large JPEGs at reduced size: faster, slightly different pixels");
  options.flag("--tolerant", tolerant_, "keep the readable part of damaged files");
  options.flag("--no-orient", no_orient_, "ignore the EXIF orientation of a picture");
  declare_store(options, store_);
}

Job Images::make(const RunOptions&, const std::shared_ptr<Pool>& pool) {
  PixelSize size = parse_size(size_);
  ImageFolder folder(input_, {.size = size,
                              .channels = channels_,
                              .layout = layouts.at(layout_),
                              .filter = filters.at(filter_),
                              .alpha = alpha_ == "drop" ? AlphaRule::drop : AlphaRule::composite,
                              .orient = !no_orient_,
                              .tolerant = tolerant_,
                              .fast = fast_,
                              .files = listing(pool)});
  FileList files = folder.files();
  Job job{.what = "images",
          .data = folder,
          .source = sources_of(files),
          .options = {{"medium", "images"},
                      {"size", to_string(size)},
                      {"channels", std::to_string(channels_)},
                      {"layout", layout_},
                      {"filter", filter_},
                      {"alpha", alpha_},
                      {"orient", no_orient_ ? "no" : "yes"},
                      {"tolerant", tolerant_ ? "yes" : "no"},
                      {"fast", fast_ ? "yes" : "no"}}};
  if (store_.encoded()) {
    job.data = keep_encoded(job.data, path_of(files), "image", store_);
    job.binary = {"image"};
    job.options = {{"medium", "images"}, {"store", "encoded"}, {"check", store_.check}};
  }
  job.main_field = "image";
  job.varying_shard_rows = shard_rows_for(files);
  return job;
}

}  // namespace

std::unique_ptr<Medium> images_medium() {
  return std::make_unique<Images>();
}

}  // namespace millrace
