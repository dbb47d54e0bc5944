// Embeds texts with a small transformer over bytes that is trained with the model it conditions, so
// no pretrained model must be downloaded. Private to training/models.
#pragma once

#include "decoder_layers.h"

#include <millrace/training/models/mesh_transformer/mesh_transformer_config.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <torch/nn/modules/embedding.h>

namespace millrace {

class TextEncoder : public torch::nn::Module {
 public:
  TextEncoder(const TextEncoderConfig& config, std::int64_t dim);
  struct Encoded {
    // embeds: [texts, bytes of the longest, dim]; mask: bool [texts, bytes], false for padding.
    torch::Tensor embeds, mask;
  };
  Encoded forward(const std::vector<std::string>& texts);

 private:
  std::int64_t max_bytes_;
  torch::nn::Embedding bytes_, places_;
  std::shared_ptr<DecoderLayers> layers_;
};

}  // namespace millrace
