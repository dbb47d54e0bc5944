// The arguments of the quantizers (lfq.h, vector_quantizer.h, fsq.h), without LibTorch.
//
//   VectorQuantizerOptions options{.dim = 64, .codebook_size = 512, .codebook_dim = 32};
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace millrace {

// Lookup-free: see lfq.h.
struct LfqOptions {
  std::int64_t dim = 0;            // 0: as many as the codebooks have bits
  std::int64_t codebook_size = 0;  // a power of 2; 0: 2 to the power of dim
  double entropy_loss_weight = 0.1;
  double commitment_loss_weight = 0.25;
  double diversity_gamma = 1;
  std::int64_t num_codebooks = 1;
  std::optional<bool> keep_num_codebooks_dim{};  // unless told: with more than one codebook
  double codebook_scale = 1;
  double frac_per_sample_entropy = 1;  // of the feature vectors, drawn at random
  bool use_code_agnostic_commit_loss = false;
  bool projection_has_bias = true;
  std::optional<double> soft_clamp_input_value{};
  bool cosine_sim_project_in = false;
  std::optional<double> cosine_sim_project_in_scale{};
  std::optional<bool> channel_first{};  // unless told: with 4 and more dimensions
  // The entropies without a table of vectors by codes: the same but for rounding, in a fraction of
  // the time and memory.
  bool factored_entropies = false;
};

// A learned codebook: see vector_quantizer.h.
struct VectorQuantizerOptions {
  std::int64_t dim = 0;
  std::int64_t codebook_size = 512;
  std::int64_t codebook_dim = 0;  // 0: as `dim`, without projections
  double decay = 0.8;
  double eps = 1e-5;
  double commitment_weight = 1;
  // The codebook starts as the means of the first batch's features.
  bool kmeans_init = false;
  int kmeans_iters = 10;
  bool use_cosine_sim = false;
  double threshold_ema_dead_code = 0;  // codes used less than this are replaced by features
};

// Finite scalar: see fsq.h.
struct FsqOptions {
  std::vector<std::int64_t> levels{};
  std::int64_t dim = 0;  // 0: as many as there are levels in all codebooks
  std::int64_t num_codebooks = 1;
};

}  // namespace millrace
