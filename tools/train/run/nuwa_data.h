// What train_nuwa is trained on.
#pragma once

#include "tools/train/nuwa_options.h"

#include <millrace/decoders/text/tokenizer.h>
#include <millrace/pipeline/data/dataset.h>

#include <memory>

namespace millrace {

// Fields: video, the clips or their codes; caption, and its tokens.
struct NuwaData {
  AnyDataset augmented, plain;  // with and without what is random
  bool pixels = true;           // and not codes
};

std::shared_ptr<const Tokenizer> nuwa_tokenizer(const NuwaTrainOptions& options);
// Throws an Error of kind usage if it is not what the model takes.
NuwaData nuwa_data(const NuwaTrainOptions& options, std::shared_ptr<const Tokenizer> tokenizer);

}  // namespace millrace
