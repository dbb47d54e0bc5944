// The networks of NUWA: attention to text, attention to neighbours in a video, feed-forward layers,
// and the plain and the reversible transformer. Each part processes a whole sequence, or one token
// at a time with a cache. Private to training/models.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>

namespace millrace {

// Inputs of a transformer layer besides its own sequence.
struct NuwaContext {
  torch::Tensor mask;       // bool [batch, tokens]: true where the sequence has a token
  torch::Tensor rotary;     // [tokens, channels]: angles of rotary embeddings
  torch::Tensor text;       // [batch, words, dim]
  torch::Tensor text_mask;  // bool [batch, words]
};

// Cache of one layer while a video is generated token by token. Position 0 is the start token; the
// video follows. `longest`: the largest number of positions.
struct NuwaCache {
  torch::Tensor before_shift;  // [batch, longest, dim]
  torch::Tensor keys, values;
  std::int64_t longest = 0;
};

class NuwaPartImpl : public torch::nn::Module {
 public:
  virtual torch::Tensor forward(const torch::Tensor& x, const NuwaContext& context) = 0;
  // Processes the token at position `place` of a video, [batch, 1, dim].
  virtual torch::Tensor step(const torch::Tensor& x, std::int64_t place, const NuwaContext& context,
                             NuwaCache& cache) = 0;
};

struct NuwaTransformerOptions {
  std::int64_t dim = 0;
  std::int64_t depth = 0;
  std::int64_t heads = 8;
  std::int64_t dim_head = 64;
  std::int64_t ff_mult = 4;
  double attn_dropout = 0, ff_dropout = 0;
  bool reversible = true;
  // True for the video transformer, which attends to neighbours and to the text.
  bool video = false;
  std::array<std::int64_t, 3> video_shape{};  // frames, rows, columns
  std::array<std::int64_t, 3> kernel{3, 3, 3};
  std::vector<std::int64_t> dilations{1};  // one per layer, repeated
  bool rel_pos_bias = false;
  bool shift_video_tokens = true;
  std::int64_t frames_at_once = 0;  // queries per attention call, in frames; 0: all
};

// LayerNorm, part, LayerNorm. Video tokens may be shifted before the part: a quarter of the
// channels comes from the row above, another quarter from the column to the left.
class NuwaSandwichImpl : public torch::nn::Module {
 public:
  // `wrapped`: the part is registered as "fn.fn" instead of "fn". `side`: rows and columns of a
  // frame whose tokens are shifted; 0 disables shifting.
  NuwaSandwichImpl(std::int64_t dim, std::shared_ptr<NuwaPartImpl> part, bool wrapped,
                   std::int64_t side);

  torch::Tensor forward(const torch::Tensor& x, const NuwaContext& context);
  torch::Tensor step(const torch::Tensor& x, std::int64_t place, const NuwaContext& context,
                     NuwaCache& cache);

 private:
  torch::Tensor shifted(const torch::Tensor& x) const;
  torch::Tensor shifted_one(const torch::Tensor& x, std::int64_t place, NuwaCache& cache) const;

  std::shared_ptr<NuwaPartImpl> part_;
  torch::Tensor pre_weight_, pre_bias_, post_weight_, post_bias_;
  std::int64_t side_;
};

class NuwaTransformerImpl : public torch::nn::Module {
 public:
  explicit NuwaTransformerImpl(const NuwaTransformerOptions& options);

  torch::Tensor forward(const torch::Tensor& x, const NuwaContext& context);
  // Processes the next token of a video. `caches` is empty before the first call.
  torch::Tensor step(const torch::Tensor& x, std::int64_t place, const NuwaContext& context,
                     std::vector<NuwaCache>& caches);

 private:
  template <class Run>
  torch::Tensor through(const torch::Tensor& x, const Run& run);

  NuwaTransformerOptions options_;
  std::vector<std::shared_ptr<NuwaSandwichImpl>> parts_;  // in forward order
  torch::Tensor norm_weight_, norm_bias_;
};
TORCH_MODULE(NuwaTransformer);

// Axial position embedding, [positions, dim]: the sum of one table per axis. Axes of length 1 have
// no table.
class AxialPositionsImpl : public torch::nn::Module {
 public:
  AxialPositionsImpl(std::int64_t dim, const std::array<std::int64_t, 3>& shape);
  torch::Tensor forward() const;

 private:
  std::vector<torch::Tensor> axes_;
};
TORCH_MODULE(AxialPositions);

}  // namespace millrace
