#include "text_encoder.h"

#include <millrace/training/device/torch_api.h>

#include <algorithm>

namespace millrace {

namespace {

constexpr std::int64_t no_byte = 256;

DecoderOptions layers_of(const TextEncoderConfig& config, std::int64_t dim) {
  // One learned key, so that attention is defined for an empty text.
  return {.arguments = {.ff_glu = true, .attn_num_mem_kv = 1},
          .dim = dim,
          .depth = config.depth,
          .heads = config.heads,
          .dim_head = config.dim_head,
          .causal = false};
}

}  // namespace

TextEncoder::TextEncoder(const TextEncoderConfig& config, std::int64_t dim)
    : max_bytes_(config.max_bytes),
      bytes_(register_module("bytes", torch::nn::Embedding(no_byte + 1, dim))),
      places_(register_module("places", torch::nn::Embedding(config.max_bytes, dim))),
      layers_(register_module("layers", std::make_shared<DecoderLayers>(layers_of(config, dim)))) {}

TextEncoder::Encoded TextEncoder::forward(const std::vector<std::string>& texts) {
  const auto rows = static_cast<std::int64_t>(texts.size());
  std::size_t longest = 1;
  for (const std::string& text : texts) longest = std::max(longest, text.size());
  const std::int64_t length = std::min(static_cast<std::int64_t>(longest), max_bytes_);
  const torch::Tensor codes = torch::full({rows, length}, no_byte, torch::kInt64);
  auto code = codes.accessor<std::int64_t, 2>();
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::string& text = texts[static_cast<std::size_t>(i)];
    const std::int64_t bytes = std::min(static_cast<std::int64_t>(text.size()), length);
    for (std::int64_t j = 0; j < bytes; ++j) {
      code[i][j] = static_cast<unsigned char>(text[static_cast<std::size_t>(j)]);
    }
  }
  const torch::Tensor on_device = codes.to(bytes_->weight.device());
  const torch::Tensor mask = on_device != no_byte;
  const torch::Tensor x = bytes_->forward(on_device) + places_->weight.slice(0, 0, length);
  return {layers_->forward(x, {}, nullptr, mask), mask};
}

}  // namespace millrace
