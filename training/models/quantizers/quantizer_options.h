// The arguments of the quantizers (lfq.h, vector_quantizer.h, fsq.h), without LibTorch.
//
//   VectorQuantizerOptions options{.dim = 64, .codebook_size = 512, .codebook_dim = 32};
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace millrace {

struct LfqOptions {
  std::int64_t dim = 0;            // 0: bits of all codebooks
  std::int64_t codebook_size = 0;  // a power of 2; 0: 2^dim
  double entropy_loss_weight = 0.1;
  double commitment_loss_weight = 0.25;
  double diversity_gamma = 1;
  std::int64_t num_codebooks = 1;
  std::optional<bool> keep_num_codebooks_dim{};  // default: num_codebooks > 1
  double codebook_scale = 1;
  double frac_per_sample_entropy = 1;  // random fraction of the vectors that the entropy loss uses
  bool use_code_agnostic_commit_loss = false;
  bool projection_has_bias = true;
  std::optional<double> soft_clamp_input_value{};
  bool cosine_sim_project_in = false;
  std::optional<double> cosine_sim_project_in_scale{};
  std::optional<bool> channel_first{};  // default: true with 4 or more dimensions
  // Computes entropies without a table of vectors by codes. Equal up to rounding, but much faster
  // and with much less memory.
  bool factored_entropies = false;
};

struct VectorQuantizerOptions {
  std::int64_t dim = 0;
  std::int64_t codebook_size = 512;
  std::int64_t codebook_dim = 0;  // 0: `dim`, without projections
  double decay = 0.8;
  double eps = 1e-5;
  double commitment_weight = 1;
  // Initialize the codebook by k-means over the first batch.
  bool kmeans_init = false;
  int kmeans_iters = 10;
  bool use_cosine_sim = false;
  // Codes used less than this are replaced by random features; 0 disables this.
  double threshold_ema_dead_code = 0;
};

struct FsqOptions {
  std::vector<std::int64_t> levels{};
  std::int64_t dim = 0;  // 0: number of levels times number of codebooks
  std::int64_t num_codebooks = 1;
};

}  // namespace millrace
