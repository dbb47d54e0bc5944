// The networks inside NUWA: attention to text, attention to neighbours in a video, feed-forward
// layers, and the transformers of them, plain and reversible. Each part runs on a whole sequence,
// or token by token with what it remembers of those before. Private to training/models.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>

namespace millrace {

// What a part of a transformer sees beside its own sequence.
struct NuwaContext {
  torch::Tensor mask;       // bool [batch, tokens]: which tokens of its own sequence there are
  torch::Tensor rotary;     // [tokens, channels]: angles of positions
  torch::Tensor text;       // [batch, words, dim]
  torch::Tensor text_mask;  // bool [batch, words]
};

// What a part remembers of a video that grows token by token. Place 0 is the start, before the
// video; `longest`: places that there can be.
struct NuwaMemory {
  torch::Tensor before_shift;  // [batch, longest, dim]
  torch::Tensor keys, values;
  std::int64_t longest = 0;
};

class NuwaPartImpl : public torch::nn::Module {
 public:
  virtual torch::Tensor forward(const torch::Tensor& x, const NuwaContext& context) = 0;
  // Of a video: the token at `place`, [batch, 1, dim].
  virtual torch::Tensor step(const torch::Tensor& x, std::int64_t place, const NuwaContext& context,
                             NuwaMemory& memory) = 0;
};

struct NuwaTransformerOptions {
  std::int64_t dim = 0;
  std::int64_t depth = 0;
  std::int64_t heads = 8;
  std::int64_t dim_head = 64;
  std::int64_t ff_mult = 4;
  double attn_dropout = 0, ff_dropout = 0;
  bool reversible = true;
  // Of videos: they attend to neighbours and to text.
  bool video = false;
  std::array<std::int64_t, 3> video_shape{};  // frames, rows, columns
  std::array<std::int64_t, 3> kernel{3, 3, 3};
  std::vector<std::int64_t> dilations{1};  // layer by layer, and again
  bool rel_pos_bias = false;
  bool shift_video_tokens = true;
  std::int64_t frames_at_once = 0;  // queries of so many frames are run at once; 0: all
};

// Norm, part, norm; before the part, tokens of a video may be shifted: a quarter of the channels
// comes from the row above, another from the column to the left.
class NuwaSandwichImpl : public torch::nn::Module {
 public:
  // `wrapped`: the part has one more "fn" before its names. `side`: of frames that are shifted; 0:
  // they are not.
  NuwaSandwichImpl(std::int64_t dim, std::shared_ptr<NuwaPartImpl> part, bool wrapped,
                   std::int64_t side);

  torch::Tensor forward(const torch::Tensor& x, const NuwaContext& context);
  torch::Tensor step(const torch::Tensor& x, std::int64_t place, const NuwaContext& context,
                     NuwaMemory& memory);

 private:
  torch::Tensor shifted(const torch::Tensor& x) const;
  torch::Tensor shifted_one(const torch::Tensor& x, std::int64_t place, NuwaMemory& memory) const;

  std::shared_ptr<NuwaPartImpl> part_;
  torch::Tensor pre_weight_, pre_bias_, post_weight_, post_bias_;
  std::int64_t side_;
};

class NuwaTransformerImpl : public torch::nn::Module {
 public:
  explicit NuwaTransformerImpl(const NuwaTransformerOptions& options);

  torch::Tensor forward(const torch::Tensor& x, const NuwaContext& context);
  // Of a video: its next token. `memories` is empty before the first.
  torch::Tensor step(const torch::Tensor& x, std::int64_t place, const NuwaContext& context,
                     std::vector<NuwaMemory>& memories);

 private:
  template <class Run>
  torch::Tensor through(const torch::Tensor& x, const Run& run);

  NuwaTransformerOptions options_;
  std::vector<std::shared_ptr<NuwaSandwichImpl>> parts_;  // in their order
  torch::Tensor norm_weight_, norm_bias_;
};
TORCH_MODULE(NuwaTransformer);

// The sum of one table per axis, [positions, dim]; axes of length 1 have none.
class AxialPositionsImpl : public torch::nn::Module {
 public:
  AxialPositionsImpl(std::int64_t dim, const std::array<std::int64_t, 3>& shape);
  torch::Tensor forward() const;

 private:
  std::vector<torch::Tensor> axes_;
};
TORCH_MODULE(AxialPositions);

}  // namespace millrace
