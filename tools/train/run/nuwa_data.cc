// The training data of train_nuwa: GIFs with texts, arrays of clips, or codes of clips.
#include "tools/train/run/nuwa_data.h"

#include <millrace/datasets/arrays/memmap.h>
#include <millrace/datasets/arrays/moving_mnist.h>
#include <millrace/datasets/arrow/arrow_dataset.h>
#include <millrace/datasets/captions/tokenized_captions.h>
#include <millrace/datasets/folders/gif_text_folder.h>
#include <millrace/datasets/listing/file_bytes.h>
#include <millrace/datasets/tokens/token_memmap.h>
#include <millrace/pipeline/base/error.h>
#include <millrace/pipeline/data/map.h>

#include <utility>

namespace millrace {

namespace {

constexpr std::int64_t max_vocabulary_bytes = 64'000'000;

[[noreturn]] void refuse(const std::string& path, const std::string& why,
                         const std::string& hint = "") {
  throw Error(why).at(path).hint(hint).kind(ErrorKind::usage);
}

CaptionOptions captions_of(const NuwaTrainOptions& o, std::shared_ptr<const Tokenizer> tokenizer) {
  return {.tokenizer = std::move(tokenizer),
          .max_tokens = o.model.text_max_seq_len,
          .truncate = !o.no_cut};
}

ShortClip short_clip(const std::string& name) {
  if (name == "black") return ShortClip::black;
  if (name == "loop") return ShortClip::loop;
  return name == "error" ? ShortClip::error : ShortClip::repeat_last;
}

NuwaData gifs(const NuwaTrainOptions& o, const CaptionOptions& captions) {
  GifTextFolderOptions options;
  options.frames = o.model.max_video_frames;
  options.size = o.model.vae.image_size;
  options.stride = o.frame_stride;
  options.channels = static_cast<int>(o.model.vae.channels);
  options.short_clip = short_clip(o.short_clips);
  options.captions = captions;
  auto folder = [&](FrameChoice choice) {
    options.choice = choice;
    return GifTextFolder(o.train.folder, options);
  };
  const bool uniform = o.frame_choice == "uniform", random = o.frame_choice == "random";
  const FrameChoice still = uniform ? FrameChoice::uniform : FrameChoice::first;
  return {folder(random ? FrameChoice::random_window : still), folder(still), true};
}

NuwaData clips(const NuwaTrainOptions& o, const CaptionOptions& captions) {
  auto array = [&](bool rotate) {
    return MovingMnist(o.train.folder, {.frames = o.model.max_video_frames,
                                        .size = o.model.vae.image_size,
                                        .channels = static_cast<int>(o.model.vae.channels),
                                        .digits = o.digits,
                                        .digits_per_clip = static_cast<int>(o.num_digits),
                                        .texts = o.texts,
                                        .rotate = rotate,
                                        .captions = captions});
  };
  if (o.texts.empty() && o.digits.empty()) {
    refuse(o.train.folder, "is an array of clips, which needs its texts",
           "Give --texts captions.txt, one line a clip, or --digits");
  }
  return {array(o.random_rotate), array(false), true};
}

// Renames the codes, which a cache calls "tokens": here that is the field of text tokens.
Mapped cached_codes(const std::string& path) {
  const ArrowDataset cache(path);
  const Schema& schema = cache.schema();
  if (schema.find("tokens") < 0 || schema.find("caption") < 0) {
    refuse(path, "has no tokens with captions, but " + to_string(schema),
           "Make it with preprocess tokens --captions");
  }
  Field codes = schema[schema.at("tokens")];
  codes.name = "video";
  const Schema renamed{codes, text_field("caption")};
  return map(cache, renamed, [](const Sample& in, Sample& out, const LoadContext&) {
    out.set("video", in["tokens"]);
    out.set_text("caption", in.text("caption"));
  });
}

NuwaData tokens(const NuwaTrainOptions& o, const CaptionOptions& captions) {
  const std::int64_t side = o.model.vae.fmap_size();
  if (o.train.folder.ends_with(".arrow")) {
    const TokenizedCaptions pairs(cached_codes(o.train.folder), captions, "caption");
    return {pairs, pairs, false};
  }
  if (o.texts.empty() && o.digits.empty()) {
    refuse(o.train.folder, "is an array of codes, which needs its texts",
           "Give --texts captions.txt, one line a clip, or --digits");
  }
  const TokenMemmap codes(o.train.folder, {.shape = {o.model.max_video_frames * side * side},
                                           .texts = o.texts,
                                           .digits = o.digits,
                                           .num_digits = o.num_digits});
  const TokenizedCaptions pairs(codes, captions, "text");
  return {pairs, pairs, false};
}

// Codes have the size of the VAE's feature maps, pixels that of its pictures.
std::string kind_of(const NuwaTrainOptions& o) {
  const std::string& path = o.train.folder;
  if (o.dataset_type != "auto") return o.dataset_type;
  if (std::filesystem::is_directory(path) || !std::filesystem::exists(path)) return "gifs";
  if (path.ends_with(".arrow")) return "tokens";
  if (path.ends_with(".npy")) {
    const Shape shape = NpyDataset(path).schema()[0].shape;
    const bool pixels = shape.rank() >= 3 && shape[shape.rank() - 1] == o.model.vae.image_size;
    return pixels ? "videos" : "tokens";
  }
  refuse(path, "holds clips or codes, and nothing tells which", "Give --dataset-type");
}

// Checks that the data fits the model, before anything runs.
void check(const NuwaTrainOptions& o, const NuwaData& data) {
  const Schema& schema = data.plain->schema();
  const Field& video = schema[schema.at("video")];
  const std::int64_t frames = o.model.max_video_frames, side = o.model.vae.fmap_size();
  if (data.pixels) {
    const Shape wanted{frames, o.model.vae.image_size, o.model.vae.image_size,
                       o.model.vae.channels};
    if (video.shape == wanted) return;
    refuse(o.train.folder,
           "has clips of " + to_string(video.shape) + ", but the model takes " + to_string(wanted));
  }
  if (video.shape.is_fixed() && video.shape.elements() == frames * side * side) return;
  refuse(o.train.folder,
         "has codes of " + to_string(video.shape) + ", but " + std::to_string(frames) +
             " frames of this VAE are " + to_string(Shape{frames, side, side}),
         "Give the --max-video-frames and the --vae that it was made with");
}

}  // namespace

std::shared_ptr<const Tokenizer> nuwa_tokenizer(const NuwaTrainOptions& o) {
  if (o.bpe.empty()) return byte_tokenizer();
  FileBytes file;
  if (Status status = file.read(o.bpe, max_vocabulary_bytes); !status.ok()) throw status.error();
  std::unique_ptr<const Tokenizer> tokenizer;
  if (Status status = load_bpe(file.bytes(), {}, tokenizer); !status.ok()) {
    refuse(o.bpe, status.error().what());
  }
  return tokenizer;
}

NuwaData nuwa_data(const NuwaTrainOptions& o, std::shared_ptr<const Tokenizer> tokenizer) {
  const CaptionOptions captions = captions_of(o, std::move(tokenizer));
  const std::string kind = kind_of(o);
  NuwaData data = kind == "gifs"     ? gifs(o, captions)
                  : kind == "videos" ? clips(o, captions)
                                     : tokens(o, captions);
  check(o, data);
  return data;
}

}  // namespace millrace
