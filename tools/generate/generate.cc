// Generates with trained models: meshes, with or without a text, and reconstructions.
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
The kind of model is read from its file. OUT/sheet.png shows pictures of all results.
)";

void add_options(const Options& options, GenerateOptions& o) {
  options
      .add("--model", o.model,
           "checkpoint of train_mesh_transformer or train_mesh_autoencoder, or weights of "
           "either from Python")
      .required()
      .type_name("FILE");
  options.add("--out", o.out, "folder to write to; created if missing")
      .required()
      .type_name("FOLDER");
  options
      .add("--model-config", o.model_config,
           "arguments of the model as TOML or JSON, if its file does not have them")
      .type_name("FILE");
  options
      .add("--weights", o.weights,
           "weights of a checkpoint to use: ema or model; default: the moving average if there "
           "is one")
      .one_of({"ema", "model"});
  Options what = options.group("What");
  what.add("--text", o.texts, "one or more texts to generate meshes of; --count repeats them");
  what.add("--text-embeds", o.text_embeds,
           "text embeddings instead of --text: .npy, float32 [n, words, channels]")
      .type_name("FILE");
  what.add("--meshes", o.meshes, "folder or cache of meshes to reconstruct").type_name("FOLDER");
  what.add("--count", o.count,
           "number of meshes to generate; 0: one for each text, or 8, or all of --meshes");
  what.add("--max-faces", o.max_faces,
           "maximum number of faces of a mesh; 0: as many as the model allows");
  Options how = options.group("How");
  how.add("--temperature", o.temperature, "sampling temperature; 0: always the likeliest code");
  how.add("--cond-scale", o.cond_scale,
          "scale of classifier-free guidance by the text; 1: no guidance");
  how.add("--top-k", o.top_k,
          "sample from the k likeliest codes: a number, or below 1 a fraction of all; 0: all");
  how.add("--top-p", o.top_p,
          "sample from the likeliest codes up to this total probability, instead of --top-k; 0: "
          "off");
  how.add("--batch-size", o.batch_size, "number of meshes generated at once");
  how.add("--seed", o.seed, "random seed; the same seed and options give the same meshes");
  how.add("--threads", o.threads, "number of LibTorch threads; 0: LibTorch's default");
  options.add("--format", o.format, "format of the mesh files: obj or ply").one_of({"obj", "ply"});
  options.add("--side", o.side, "height and width of each picture in the sheet, in pixels")
      .range(16, 2048);
  options.flag("--json", o.json, "print the result as one JSON object");
  options.flag("--quiet", o.quiet, "print warnings and the result only, no progress");
}
}  // namespace
}  // namespace millrace

int main(int argc, char** argv) {
  using namespace millrace;
  CommandLine line("generate",
                   "Generates meshes with a trained model, as files and as one sheet of pictures.",
                   examples);
  GenerateOptions values;
  const Options options = line.options();
  add_options(options, values);
  return line.run(argc, argv, [&] { return run_trainer("millrace_generate", options, &values); });
}
