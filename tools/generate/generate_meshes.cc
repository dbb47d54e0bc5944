// generate with mesh models: reconstructs given meshes, and generates new ones.
#include "tools/generate/generate_run.h"
#include "tools/preprocess/tokens/model_weights.h"

#include <millrace/datasets/arrays/memmap.h>
#include <millrace/datasets/mesh/mesh_data.h>
#include <millrace/decoders/mesh/mesh_picture.h>
#include <millrace/decoders/mesh/mesh_write.h>
#include <millrace/pipeline/base/durable_file.h>
#include <millrace/pipeline/base/error.h>
#include <millrace/pipeline/base/log.h>
#include <millrace/pipeline/base/random.h>
#include <millrace/training/checkpoint/checkpoint.h>
#include <millrace/training/checkpoint/tensors.h>
#include <millrace/training/device/tensor.h>
#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/mesh_autoencoder/mesh_autoencoder.h>
#include <millrace/training/models/mesh_transformer/mesh_transformer.h>
#include <millrace/training/models/module/module_tensors.h>
#include <millrace/training/models/module/tensor_views.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include <c10/util/StringUtil.h>

namespace millrace {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const std::string& why, const std::string& path, const char* hint = "") {
  throw Error(why).at(path).hint(hint).kind(ErrorKind::usage);
}

class Output {
 public:
  explicit Output(const GenerateOptions& options) : options_(options) {}

  void write(const std::string& name, const Array& triangles, const std::string& text = "") {
    const Mesh mesh = mesh_of_triangles(triangles);
    put(name + "." + options_.format,
        options_.format == "ply" ? encode_ply(mesh) : encode_obj(mesh));
    if (!text.empty()) put(name + ".txt", text + "\n");
    made.lines.push_back(c10::str(name, ".", options_.format, ": ", mesh.faces.size(), " faces",
                                  text.empty() ? "" : ", " + text));
  }

  Made made;

 private:
  void put(const std::string& name, const std::string& content) {
    write_durably(fs::path(options_.out) / name, content);
    ++made.files;
  }
  const GenerateOptions& options_;
};

std::string name_of(const char* what, std::size_t number) {
  char name[48];
  std::snprintf(name, sizeof name, "%s_%03zu", what, number);
  return name;
}

// Rows of the sheet: the given mesh and its reconstruction by the autoencoder.
std::vector<std::vector<Array>> reconstruct(const GenerateOptions& o, MeshAutoencoder& model,
                                            Output& output) {
  const MeshData meshes = open_meshes(o.meshes, {.max_faces = o.max_faces});
  const Dataset& data = *meshes.plain;
  const std::int64_t count = o.count == 0 ? data.size() : std::min(o.count, data.size());
  std::vector<std::vector<Array>> rows;
  for (std::int64_t i = 0; i < count; ++i) {
    Sample sample(data.schema());
    if (Status status = data.load(i, {.index = i}, sample); !status.ok()) {
      log(LogLevel::warning, data.describe(i) + ": " + status.error().reason() + "; left out");
      continue;
    }
    const Meshes one{.vertices = to_tensor(sample["vertices"]).unsqueeze(0),
                     .faces = to_tensor(sample["faces"]).unsqueeze(0),
                     .face_edges = to_tensor(sample["face_edges"]).unsqueeze(0)};
    const torch::Tensor made = model->reconstruct(one)[0];
    const torch::Tensor all = torch::ones({made.size(0)}, torch::kBool);
    rows.push_back({triangles_of(sample["vertices"].as<const float>(),
                                 sample["faces"].as<const std::int64_t>()),
                    face_triangles(made, all)});
    const std::string number = name_of("mesh", static_cast<std::size_t>(i));
    output.write(number + ".real", rows.back()[0]);
    output.write(number + ".reconstructed", rows.back()[1]);
  }
  return rows;
}

MeshPictureOptions picture(const GenerateOptions& o) {
  return {.side = o.side};
}

MeshAutoencoder autoencoder_of(const std::string& arguments, const GenerateOptions& o) {
  if (arguments.empty()) {
    refuse("does not say what its autoencoder is", o.model,
           "Put the autoencoder's arguments as JSON under \"autoencoder\" in --model-config");
  }
  return MeshAutoencoder(MeshAutoencoderConfig::from_json(arguments));
}

// The text embeddings to condition on, [n, words, channels], or undefined.
torch::Tensor conditions(const GenerateOptions& o, MeshTransformer& model) {
  const MeshTransformerConfig& config = model->config();
  const bool given = !o.texts.empty() || !o.text_embeds.empty();
  if (given && !config.condition_on_text) {
    refuse("was trained without texts: it takes neither --text nor --text-embeds", o.model);
  }
  if (!o.text_embeds.empty()) {
    const torch::Tensor rows = to_tensor(NpyDataset(o.text_embeds).rows()).clone();
    const torch::Tensor whole = rows.dim() == 2 ? rows.unsqueeze(1) : rows;
    if (whole.dim() != 3 || whole.size(2) != config.dim_text || !whole.is_floating_point()) {
      refuse(c10::str("must be float32 [n, words, ", config.dim_text, "], but is ", rows.sizes()),
             o.text_embeds);
    }
    return whole.to(torch::kFloat32);
  }
  if (o.texts.empty()) return {};
  if (!config.text_encoder) {
    refuse("was trained on embeddings, and has no text encoder of its own", o.model,
           "Give what the same encoder makes of the texts with --text-embeds");
  }
  return model->embed_texts(o.texts);
}

MeshGenerateOptions how(const GenerateOptions& o, const MeshTransformerConfig& config) {
  MeshGenerateOptions options{.temperature = o.temperature, .cond_scale = o.cond_scale};
  options.filter = o.top_p > 0   ? CodeFilter::top_p
                   : o.top_k > 0 ? CodeFilter::top_k
                                 : CodeFilter::none;
  if (o.top_p > 0) options.top_p = o.top_p;
  if (o.top_k >= 1) options.k = static_cast<std::int64_t>(o.top_k);
  if (o.top_k > 0 && o.top_k < 1) options.top_k_share = o.top_k;
  options.max_seq_len = std::min(o.max_faces * config.codes_of_face(), config.max_seq_len);
  return options;
}

struct Text {
  std::string text{};
  std::int64_t row = -1;
};

std::vector<Text> wanted(const GenerateOptions& o, const torch::Tensor& texts) {
  std::vector<Text> all;
  const std::int64_t rows = texts.defined() ? texts.size(0) : 0;
  const std::int64_t count = o.count > 0 ? o.count : std::max<std::int64_t>(rows, rows > 0 ? 0 : 8);
  for (std::int64_t i = 0; i < count; ++i) {
    Text one{.row = rows > 0 ? i % rows : -1};
    if (!o.texts.empty()) one.text = o.texts[static_cast<std::size_t>(one.row)];
    all.push_back(one);
  }
  return all;
}

std::vector<Array> generate(const GenerateOptions& o, MeshTransformer& model,
                            MeshAutoencoder& autoencoder, Output& output) {
  const torch::Tensor texts = conditions(o, model);
  const std::vector<Text> all = wanted(o, texts);
  const std::int64_t of_face = model->config().codes_of_face();
  std::vector<Array> made;
  for (std::size_t begin = 0; begin < all.size();) {
    const std::size_t end = std::min(all.size(), begin + static_cast<std::size_t>(o.batch_size));
    MeshGenerateOptions options = how(o, model->config());
    options.batch_size = static_cast<std::int64_t>(end - begin);
    options.seed = mix(o.seed, begin);
    if (texts.defined()) {
      std::vector<torch::Tensor> rows;
      for (std::size_t i = begin; i < end; ++i) rows.push_back(texts[all[i].row]);
      options.text_embeds = torch::stack(rows);
    }
    const torch::Tensor codes = model->generate(options);
    const DecodedFaces faces = autoencoder->decode_from_codes_to_faces(
        codes.slice(1, 0, codes.size(1) / of_face * of_face));
    for (std::size_t i = begin; i < end; ++i) {
      const auto row = static_cast<std::int64_t>(i - begin);
      made.push_back(face_triangles(faces.coordinates[row], faces.mask[row]));
      output.write(name_of("made", i), made.back(), all[i].text);
    }
    begin = end;
  }
  return made;
}

Made run_autoencoder(const GenerateOptions& o, const Value& saved, const Dict& weights) {
  if (o.meshes.empty()) {
    refuse("is a mesh autoencoder: it needs --meshes to reconstruct", o.model,
           "To make new meshes give a checkpoint of train_mesh_transformer");
  }
  const TokenModelOptions from{.model = o.model, .config = o.model_config};
  MeshAutoencoder model(MeshAutoencoderConfig::from_json(
      model_configuration(saved, from, MeshAutoencoderConfig{}.to_json())));
  copy_tensors(weights, state_tensors(*model), o.model);
  model->eval();
  Output output(o);
  const auto rows = reconstruct(o, model, output);
  if (rows.empty()) refuse("no mesh of it can be read", o.meshes);
  output.made.sheet = mesh_sheet(rows, picture(o));
  return output.made;
}

Made run_transformer(const GenerateOptions& o, const Value& saved, const Dict& weights) {
  const TokenModelOptions from{.model = o.model, .config = o.model_config};
  const auto config = MeshTransformerConfig::from_json(
      model_configuration(saved, from, MeshTransformerConfig{}.to_json()));
  MeshAutoencoder autoencoder = autoencoder_of(config.autoencoder, o);
  MeshTransformer model(config, autoencoder.ptr());
  copy_tensors(weights, state_tensors(*model), o.model);
  model->eval();
  Output output(o);
  std::vector<std::vector<Array>> rows;
  if (!o.meshes.empty()) rows = reconstruct(o, autoencoder, output);
  const std::vector<Array> made = generate(o, model, autoencoder, output);
  constexpr std::size_t across = 4;
  for (std::size_t i = 0; i < made.size(); ++i) {
    if (o.meshes.empty()) {
      if (i % across == 0) rows.emplace_back();
      rows.back().push_back(made[i]);
      continue;
    }
    if (i >= rows.size()) rows.push_back({Array(), Array()});
    rows[i].push_back(made[i]);
  }
  output.made.sheet = mesh_sheet(rows, picture(o));
  return output.made;
}

bool has(const Dict& weights, const char* name) {
  return weights.find(name) != nullptr;
}

}  // namespace

const Generator mesh_transformer_generator{.what = "mesh transformer",
                                           .fits =
                                               [](const Dict& weights) {
                                                 return has(weights, "sos_token") &&
                                                        has(weights, "vertex_embed");
                                               },
                                           .run = run_transformer};

const Generator mesh_autoencoder_generator{
    .what = "mesh autoencoder",
    .fits = [](const Dict& weights) { return has(weights, "coor_embed.weight"); },
    .run = run_autoencoder};

}  // namespace millrace
