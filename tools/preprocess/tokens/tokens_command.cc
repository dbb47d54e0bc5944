// Media to tokens: a stage between the decoders and the cache.
#include "tools/inspect/probe.h"
#include "tools/preprocess/media.h"
#include "tools/preprocess/shards/cache_rows.h"
#include "tools/preprocess/tokens/embeddings.h"
#include "tools/preprocess/tokens/text_tokens.h"
#include "tools/preprocess/tokens/token_model.h"

#include <millrace/datasets/folders/gif_text_folder.h>
#include <millrace/datasets/folders/image_folder.h>
#include <millrace/datasets/folders/mesh_folder.h>
#include <millrace/datasets/folders/video_folder.h>
#include <millrace/datasets/tokens/token_encoder.h>
#include <millrace/pipeline/data/map.h>

namespace millrace {

namespace {

class TokensCommand : public Medium {
 public:
  const char* name() const override { return "tokens"; }
  const char* about() const override {
    return "Pictures, clips or meshes to tokens. --model is a checkpoint of train_video_tokenizer, "
           "train_vqgan, train_nuwa_vae or train_mesh_autoencoder, or of their models in Python; "
           "or "
           "a codebook of patches in an .npy file, float32 [entries, patch * patch * channels] "
           "over "
           "pixels in [0, 1].";
  }
  const char* examples() const override {
    return R"(
Examples:
  preprocess tokens clips/ --model checkpoints/checkpoint.90.pt --out tokens.npy --frames 17
  preprocess tokens clips/ --model checkpoint.90.pt --weights model --out tokens.arrow
  preprocess tokens photos/ --model results/vae.9000.ema.pt --out tokens.npy --size 256
  preprocess tokens clips/ --model from_python.pt --model-config model.toml --out tokens.npy
  preprocess tokens gifs/ --model nuwa_vae/checkpoint.9000.pt --frames 10 --captions --out gifs.arrow
  preprocess tokens photos/ --model codebook.npy --out tokens.npy --dtype int64
  preprocess tokens meshes/ --model checkpoints/mesh-autoencoder.ckpt.9.pt --out codes.arrow
  preprocess tokens songs/ --model results/mulan.9000.pt --out sounds.arrow     # embeddings
  preprocess tokens captions/ --medium text --model results/mulan.9000.pt --out texts.arrow
A model's own size and channels are the default. A file of weights alone needs the model's arguments:
--model-config, or a config.toml beside it. TokensCommand have the smallest type that holds the codebook.
A checkpoint of train_mulan turns sounds and texts into embeddings, float32 [dim_latent], for search.
The tokens of a mesh are a list: [faces * corners * quantizers], face by face.
)";
  }
  void declare(const Options& options) override;
  Job make(const RunOptions& options, const std::shared_ptr<Pool>& pool) override;

 private:
  Job pictures(const std::shared_ptr<Pool>& pool) const;
  Job clips(const std::shared_ptr<Pool>& pool) const;
  Job captioned_gifs(const std::shared_ptr<Pool>& pool) const;
  Job meshes(const std::shared_ptr<Pool>& pool,
             const std::shared_ptr<const TokenModel>& model) const;
  // Whether the folder's clips are meant, and not its pictures.
  bool wants_clips(const std::shared_ptr<Pool>& pool) const;
  // What is not given is what the model takes.
  std::shared_ptr<const TokenModel> open_model();

  std::string input_, model_, size_, medium_ = "auto", dtype_, config_, weights_;
  std::string short_rule_ = "repeat", text_ = "none";
  std::int64_t max_faces_ = 0;
  EmbeddingOptions embeddings_;
  std::int64_t frames_ = 17, patch_ = 0, patch_frames_ = 1;
  int channels_ = 0;
  bool captions_ = false;
};

void TokensCommand::declare(const Options& options) {
  options.add("folder,--folder", input_, "folder with the files to encode; subfolders are included")
      .required()
      .type_name("FOLDER");
  options.add("--model", model_, "checkpoint, weights or codebook that makes the tokens")
      .required()
      .type_name("FILE");
  options
      .add("--weights", weights_,
           "weights of a checkpoint to use: ema or model; default: the moving average if there "
           "is one")
      .one_of({"ema", "model"});
  options
      .add("--model-config", config_,
           "arguments of the model as TOML or JSON, if its file does not have them")
      .type_name("FILE");
  options
      .add("--medium", medium_,
           "kind of files to encode: images, videos, audio or text; auto: what the folder has "
           "or what the model takes")
      .one_of({"auto", "images", "videos", "audio", "text"});
  options.add("--size", size_,
              "size of a frame in pixels: 256 or 480x640 (height x width); default: the model's, "
              "else 256");
  options
      .add("--channels", channels_,
           "number of channels: 1 grey, 3 RGB; default: the model's, else 3")
      .one_of({1, 3})
      .default_text("");
  options.add("--frames", frames_, "number of frames of a clip").positive();
  options
      .add("--short", short_rule_,
           "fill clips with too few frames: repeat the last, black or loop; or error")
      .one_of(short_clip_rules());
  options.flag("--captions", captions_,
               "encode GIFs with a text beside each (a.gif and a.txt) and store the texts too");
  options
      .add("--patch", patch_,
           "height and width of a patch in pixels; 0: from the length of the codebook's vectors")
      .non_negative();
  options.add("--patch-frames", patch_frames_, "number of frames of a patch").positive();
  options.add("--dtype", dtype_, "integer type of the tokens; default: the smallest that fits");
  declare_embeddings(options, embeddings_);
  options
      .add("--max-faces", max_faces_,
           "maximum number of faces of a mesh; larger meshes count as errors; 0: no limit")
      .non_negative();
  options
      .add("--text", text_,
           "text file beside each mesh (a.obj and a.txt): none, optional or required")
      .one_of({"none", "optional", "required"});
}

Job TokensCommand::pictures(const std::shared_ptr<Pool>& pool) const {
  ImageFolder folder(input_,
                     {.size = parse_size(size_), .channels = channels_, .files = listing(pool)});
  Job job{.what = "images",
          .data = folder,
          .source = sources_of(folder.files()),
          .options = {{"medium", "images"}}};
  job.main_field = "image";
  return job;
}

Job TokensCommand::clips(const std::shared_ptr<Pool>& pool) const {
  VideoFolder folder(input_, {.frames = frames_,
                              .size = parse_size(size_),
                              .channels = channels_,
                              .short_clip = short_clip_rules().at(short_rule_),
                              .files = listing(pool)});
  Job job{.what = "videos",
          .data = folder,
          .source = sources_of(folder.files()),
          .options = {
              {"medium", "videos"}, {"frames", std::to_string(frames_)}, {"short", short_rule_}}};
  job.main_field = "video";
  return job;
}

Job TokensCommand::captioned_gifs(const std::shared_ptr<Pool>& pool) const {
  GifTextFolderOptions options;
  options.frames = frames_;
  options.size = parse_size(size_);
  options.channels = channels_;
  options.short_clip = short_clip_rules().at(short_rule_);
  options.files = listing(pool);
  auto folder = std::make_shared<GifTextFolder>(input_, options);
  Job job{.what = "gifs",
          .data = folder,
          .source = paired_sources(
              input_, [folder](std::int64_t i) { return folder->path(i); },
              [folder](std::int64_t i) { return folder->text_path(i); }),
          .options = {{"medium", "gifs with texts"},
                      {"frames", std::to_string(frames_)},
                      {"short", short_rule_}}};
  job.main_field = "video";
  job.text_hint = "or leave --captions out";
  return job;
}

// What the stage makes of the main field takes its place. It runs in the loader's tasks, a sample
// at a time: what a sample becomes does not depend on its neighbours, so a cache that was
// interrupted is the same.
void to_tokens(Job& job, const std::shared_ptr<const TokenEncoder>& stage, DType dtype) {
  const std::string from = job.main_field;
  std::vector<Field> fields;
  for (const Field& field : job.data->schema()) {
    fields.push_back(field);
    if (field.name != from) continue;
    fields.back() = {.name = "tokens", .dtype = dtype, .shape = stage->token_shape(field.shape)};
  }
  auto encode = [stage, dtype, from](const Sample& in, Sample& out, const LoadContext&) {
    for (const Field& field : in.schema()) {
      if (field.name == from) continue;
      if (field.text) {
        out.set_text(field.name, in.text(field.name));
      } else {
        out.set(field.name, in[field.name]);
      }
    }
    const Array& sample = in[from];
    const Array one = sample.reshaped(sample.shape().with_front(1));
    out.set("tokens", narrowed(stage->encode(one).row(0), dtype));
  };
  job.data = map(job.data, Schema(fields), encode);
  job.main_field = "tokens";
  job.slow_rows = true;
}

Job TokensCommand::meshes(const std::shared_ptr<Pool>& pool,
                          const std::shared_ptr<const TokenModel>& model) const {
  MeshFolderOptions options;
  options.max_faces = max_faces_;
  options.files = listing(pool);
  if (text_ != "none") {
    options.text = text_ == "optional" ? TextBeside::optional : TextBeside::required;
  }
  auto folder = std::make_shared<MeshFolder>(input_, options);
  const DType dtype = token_dtype(dtype_, model->vocabulary());
  std::vector<Field> fields{{.name = "tokens", .dtype = dtype, .shape = {-1}},
                            {.name = "face_count", .dtype = DType::int64, .shape = {}}};
  for (const Field& field : folder->schema()) {
    if (field.name == "caption") fields.push_back(field);
  }
  auto encode = [model, dtype](const Sample& in, Sample& out, const LoadContext&) {
    const auto faces = in["faces"].as<const std::int64_t>();
    const Array codes = model->meshes()->encode(in["vertices"].as<const float>(), faces,
                                                in["face_edges"].as<const std::int64_t>());
    out.set("tokens", narrowed(codes, dtype));
    out.out("face_count").as<std::int64_t>()[0] = static_cast<std::int64_t>(faces.size()) / 3;
    if (out.schema().find("caption") >= 0) out.set_text("caption", in.text("caption"));
  };
  Job job{.what = "meshes",
          .data = map(folder, Schema(fields), encode),
          .source = paired_sources(
              input_, [folder](std::int64_t i) { return folder->path(i); },
              [folder](std::int64_t i) { return folder->text_path(i); }),
          .options = {{"medium", "meshes"},
                      {"max_faces", std::to_string(max_faces_)},
                      {"text", text_},
                      {"model", model->name()},
                      {"weights", model->hash()},
                      {"vocabulary", std::to_string(model->vocabulary())},
                      {"codes_of_face", std::to_string(model->meshes()->codes_of_face())},
                      {"configuration", model->configuration()}}};
  job.main_field = "tokens";
  job.varying_shard_rows = 32;
  return job;
}

bool TokensCommand::wants_clips(const std::shared_ptr<Pool>& pool) const {
  if (captions_) return true;
  if (medium_ != "auto") return medium_ == "videos";
  FileList files(input_, listing(pool));
  std::int64_t clips = 0, images = 0;
  for (std::int64_t i = 0; i < files.size(); ++i) {
    MediaKind kind = kind_of(files.name(i));
    clips += kind == MediaKind::video ? 1 : 0;
    images += kind == MediaKind::image ? 1 : 0;
  }
  if (clips > 0 && images > 0) {
    throw Error("the folder has pictures and clips; say which: --medium images or --medium videos")
        .at(input_)
        .kind(ErrorKind::usage);
  }
  return clips > 0;
}

std::shared_ptr<const TokenModel> TokensCommand::open_model() {
  auto model = open_token_model({.model = model_, .config = config_, .weights = weights_});
  const PictureTokens* pictures = model->pictures();
  if (pictures == nullptr) return model;
  if (channels_ == 0) channels_ = static_cast<int>(pictures->channels());
  if (size_.empty() && pictures->side() > 0) size_ = std::to_string(pictures->side());
  return model;
}

Job TokensCommand::make(const RunOptions&, const std::shared_ptr<Pool>& pool) {
  std::shared_ptr<const TokenEncoder> stage;
  std::shared_ptr<const TokenModel> model;
  if (!model_.ends_with(".npy")) {
    model = open_model();
    if (model->embeddings() != nullptr) {
      return embeddings_job(input_, medium_, {model, model->embeddings()}, embeddings_, pool);
    }
    if (model->meshes() != nullptr) return meshes(pool, model);
    stage = {model, model->pictures()};
  }
  if (channels_ == 0) channels_ = 3;
  if (size_.empty()) size_ = "256";
  if (stage == nullptr) {
    stage =
        load_codebook(model_, {.patch = patch_, .channels = channels_, .frames = patch_frames_});
  }
  const bool videos = wants_clips(pool);
  if (videos && model != nullptr && !model->pictures()->takes_clips()) {
    throw Error("is a " + model->name() + ", which takes pictures, but the folder has clips")
        .at(model_)
        .kind(ErrorKind::usage);
  }
  Job job = captions_ ? captioned_gifs(pool) : videos ? clips(pool) : pictures(pool);
  to_tokens(job, stage, token_dtype(dtype_, stage->vocabulary()));
  job.options["size"] = to_string(parse_size(size_));
  job.options["channels"] = std::to_string(channels_);
  job.options["model"] = stage->name();
  job.options["weights"] = stage->hash();
  job.options["vocabulary"] = std::to_string(stage->vocabulary());
  if (model != nullptr) job.options["configuration"] = model->configuration();
  return job;
}

}  // namespace

std::unique_ptr<Medium> tokens_medium() {
  return std::make_unique<TokensCommand>();
}

}  // namespace millrace
