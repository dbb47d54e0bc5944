#include <millrace/pipeline/base/error.h>
#include <millrace/training/checkpoint/checkpoint.h>
#include <millrace/training/checkpoint/weights.h>

namespace millrace {

Dict weights_in(const Value& saved) {
  constexpr std::string_view average = "ema_model.";
  Dict weights;
  for (const auto& [key, value] : saved.as_dict()) {
    if (!key.is<std::string>() || !key.as_string().starts_with(average)) continue;
    weights.set(key.as_string().substr(average.size()), value);
  }
  if (weights.begin() != weights.end()) return weights;
  const Value* model = saved.as_dict().find("model");
  return model != nullptr && model->is<Dict>() ? model->as_dict() : saved.as_dict();
}

void load_weights(const std::filesystem::path& path, const NamedTensors& to) {
  const Value saved = read_checkpoint(path);
  if (!saved.is<Dict>()) {
    throw Error("holds no weights: it is no dictionary").at(path.string());
  }
  copy_tensors(weights_in(saved), to, path.string());
}

}  // namespace millrace
