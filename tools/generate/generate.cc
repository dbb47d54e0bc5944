// Makes things with trained models: meshes out of nothing or out of texts, and reconstructions.
#include "tools/cli/command_line.h"
#include "tools/generate/generate_options.h"
#include "tools/train/train_options.h"

namespace millrace {
namespace {

constexpr const char* examples = R"(
Examples:
  generate --model checkpoints/mesh-transformer.ckpt.9.pt --out made --count 16
  generate --model checkpoints/mesh-transformer.ckpt.9.pt --out made --text "a chair" "a round table" --cond-scale 3
  generate --model checkpoints/mesh-transformer.ckpt.9.pt --out made --meshes chairs/    # real | reconstructed | made
  generate --model checkpoints/mesh-autoencoder.ckpt.9.pt --out made --meshes chairs/    # real | reconstructed
What the model is, its file tells. Pictures of all of it are in OUT/sheet.png.
)";

void add_options(CLI::App& app, GenerateOptions& o) {
  app.add_option("--model", o.model,
                 "a checkpoint of train_mesh_transformer or "
                 "train_mesh_autoencoder, or weights of either from Python")
      ->required()
      ->type_name("FILE");
  app.add_option("--out", o.out, "the folder to write to")->required()->type_name("FOLDER");
  app.add_option("--model-config", o.model_config,
                 "the model's arguments (TOML, JSON), where its file does not have them")
      ->type_name("FILE");
  app.add_option("--weights", o.weights, "ema or model; else the moving average if there is one")
      ->check(CLI::IsMember({"ema", "model"}));
  const auto add = [&](const char* name, auto& value, const char* text) {
    return declare(app, name, value, text, "What");
  };
  app.add_option("--text", o.texts, "what to show; several: that many, or more by --count")
      ->group("What");
  app.add_option("--text-embeds", o.text_embeds,
                 "the same as a text encoder has it: .npy, float32 [n, words, channels]")
      ->type_name("FILE")
      ->group("What");
  app.add_option("--meshes", o.meshes, "a folder of meshes, or a cache: to be reconstructed")
      ->type_name("FOLDER")
      ->group("What");
  add("--count", o.count, "how many; 0: one for each text, or 8, or all --meshes");
  add("--max-faces", o.max_faces, "of a mesh; 0: as many as the model can");
  const auto how = [&](const char* name, auto& value, const char* text) {
    return declare(app, name, value, text, "How");
  };
  how("--temperature", o.temperature, "0: always the likeliest");
  how("--cond-scale", o.cond_scale, "above 1: more of what the text makes likelier");
  how("--top-k", o.top_k, "draw from this share of all codes (below 1), or from so many; 0: all");
  how("--top-p", o.top_p, "instead: from the likeliest, until they have this much; 0: not");
  how("--batch-size", o.batch_size, "how many at once");
  how("--seed", o.seed, "the same seed and options make the same");
  how("--threads", o.threads, "of LibTorch; 0: its own choice");
  app.add_option("--format", o.format, "of the files: obj or ply")
      ->check(CLI::IsMember({"obj", "ply"}))
      ->capture_default_str();
  app.add_option("--side", o.side, "of each picture in the sheet, in pixels")
      ->check(CLI::Range(16, 2048))
      ->capture_default_str();
  app.add_flag("--json", o.json, "print the result as one JSON object");
  app.add_flag("--quiet", o.quiet, "say nothing but the result");
}

}  // namespace
}  // namespace millrace

int main(int argc, char** argv) {
  using namespace millrace;
  CommandLine line("generate",
                   "Makes meshes with a trained model, as files and as one sheet of pictures.",
                   examples);
  GenerateOptions options;
  add_options(line.app(), options);
  return line.run(argc, argv,
                  [&] { return run_trainer("millrace_generate", line.app(), &options); });
}
