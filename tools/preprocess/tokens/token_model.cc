#include "tools/preprocess/tokens/token_model.h"

#include "tools/cli/dynamic_library.h"

#include <millrace/pipeline/base/error.h>

namespace millrace {

std::shared_ptr<const TokenModel> open_token_model(const TokenModelOptions& options) {
  if (!std::filesystem::exists(options.model)) {
    throw Error("there is no such file").at(options.model.string()).kind(ErrorKind::usage);
  }
  void* library = open_library("libmillrace_tokenizers.so");
  if (library == nullptr) {
    throw Error("libmillrace_tokenizers.so is neither beside this program nor in ../lib")
        .kind(ErrorKind::usage)
        .hint(
            "It is built with LibTorch: cmake --preset release. A codebook in an .npy file needs "
            "neither");
  }
  std::shared_ptr<const TokenModel> model;
  reinterpret_cast<OpenTokenModel*>(find_function(library, open_token_model_name))(options, model);
  return model;
}

}  // namespace millrace
