// Runs generate: finds the kind of model in the file, and calls its Generator.
#include "tools/generate/generate_run.h"

#include "tools/preprocess/tokens/model_weights.h"
#include "tools/train/run/train_run.h"

#include <millrace/decoders/image/image_write.h>
#include <millrace/pipeline/base/durable_file.h>
#include <millrace/pipeline/base/error.h>
#include <millrace/pipeline/base/log.h>
#include <millrace/training/device/torch_api.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include <c10/util/StringUtil.h>
#include <nlohmann/json.hpp>

namespace millrace {
namespace {

[[noreturn]] void refuse(const std::string& why) {
  throw Error(why).kind(ErrorKind::usage);
}

void check(const GenerateOptions& o) {
  if (o.count < 0) refuse(c10::str("--count must not be negative, but is ", o.count));
  if (o.batch_size < 1) refuse(c10::str("--batch-size must be at least 1, but is ", o.batch_size));
  if (o.max_faces < 0) refuse(c10::str("--max-faces must not be negative, but is ", o.max_faces));
  if (!(o.temperature >= 0)) refuse("--temperature must be at least 0");
  if (!(o.top_p >= 0 && o.top_p <= 1)) refuse("--top-p must be 0 to 1");
  if (!(o.top_k >= 0)) refuse("--top-k must be at least 0");
  if (!o.texts.empty() && !o.text_embeds.empty()) refuse("give --text or --text-embeds, not both");
}

const Generator& generator_of(const Dict& weights, const std::string& path) {
  const std::array<const Generator*, 2> all{&mesh_transformer_generator,
                                            &mesh_autoencoder_generator};
  const auto found =
      std::ranges::find_if(all, [&](const Generator* one) { return one->fits(weights); });
  if (found != all.end()) return **found;
  throw Error(
      "holds no model that generate knows: it is neither a mesh transformer nor a mesh "
      "autoencoder")
      .at(path)
      .kind(ErrorKind::usage);
}

int generate(const GenerateOptions& o) {
  check(o);
  if (o.quiet) set_log_level(LogLevel::warning);
  if (o.threads > 0) torch::set_num_threads(o.threads);
  torch::manual_seed(o.seed);
  const torch::NoGradGuard no_gradients;
  const Value saved = read_model(o.model);
  const Dict weights = model_weights(saved, {.model = o.model, .weights = o.weights});
  const Generator& generator = generator_of(weights, o.model);
  std::filesystem::create_directories(o.out);
  const Made made = generator.run(o, saved, weights);
  std::string sheet;
  if (made.sheet.elements() > 0) {
    std::vector<std::byte> png;
    if (Status status = encode_png(made.sheet, {}, png); !status.ok()) throw status.error();
    sheet = (std::filesystem::path(o.out) / "sheet.png").string();
    write_durably(sheet, {reinterpret_cast<const char*>(png.data()), png.size()});
  }
  if (o.json) {
    const nlohmann::ordered_json result{
        {"model", generator.what}, {"out", o.out}, {"files", made.files}, {"sheet", sheet}};
    std::printf("%s\n", result.dump().c_str());
    return 0;
  }
  for (const std::string& line : made.lines) std::printf("%s\n", line.c_str());
  std::printf("%lld files by a %s in %s, and pictures of them in %s\n",
              static_cast<long long>(made.files), generator.what, o.out.c_str(), sheet.c_str());
  return 0;
}

}  // namespace
}  // namespace millrace

extern "C" __attribute__((visibility("default"))) int millrace_generate(
    const millrace::Options* /*flags*/, void* values) {
  using namespace millrace;
  return run_guarded([&] { return generate(*static_cast<GenerateOptions*>(values)); });
}
