// The constructor arguments of MuLaN, with the names and defaults of musiclm-pytorch 0.2.8. From
// JSON for parity fixtures and checkpoints, from flags in tools/train_mulan.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace millrace {

// Arguments of both transformers.
struct MulanTransformerConfig {
  std::int64_t dim = 0;  // required
  std::int64_t depth = 0;
  std::int64_t dim_head = 64, heads = 8;
  double attn_dropout = 0;
  double ff_mult = 4;
  double ff_dropout = 0;
};

// AudioSpectrogramTransformer.
struct MulanAudioConfig : MulanTransformerConfig {
  std::array<std::int64_t, 2> patch_size{16, 16};  // frequencies, time steps
  bool accept_spec = false;                        // the input is spectrograms instead of waveforms
  bool accept_spec_time_first = true;
  std::int64_t spec_n_fft = 128;
  double spec_power = 2;
  std::int64_t spec_win_length = 24;
  std::optional<std::int64_t> spec_hop_length{};  // default: half a window
  std::int64_t spec_pad = 0;
  bool spec_center = true;
  std::string spec_pad_mode = "reflect";
  // As in the package, this only sets the hop length of a time stretch that is never applied.
  double spec_aug_stretch_factor = 0.8;
  std::int64_t spec_aug_freq_mask = 80, spec_aug_time_mask = 80;
  double patch_dropout_prob = 0.25;

  std::int64_t hop_length() const { return spec_hop_length.value_or(spec_win_length / 2); }
  // Number of frequencies of a spectrogram.
  std::int64_t frequencies() const { return spec_n_fft / 2 + 1; }
  // Number of time steps of the spectrogram of `samples` samples.
  std::int64_t times(std::int64_t samples) const;
  // The smallest number of samples that fills one column of patches.
  std::int64_t fewest_samples() const;
};

struct MulanTextConfig : MulanTransformerConfig {
  std::int64_t num_tokens = 49'408;  // size of CLIP's vocabulary
  std::int64_t max_seq_len = 256;
  std::int64_t pad_id = 0;
};

struct MulanConfig {
  MulanAudioConfig audio{};
  MulanTextConfig text{};
  std::int64_t dim_latent = 128;
  bool decoupled_contrastive_learning = true;
  bool hierarchical_contrastive_loss = false;
  std::optional<std::int64_t> hierarchical_contrastive_loss_layers{};
  bool sigmoid_contrastive_loss = false;
  bool spec_augment = true;  // mask spectrograms in training; the package always does

  // Throws an Error that names an argument that is unknown or has the wrong type.
  static MulanConfig from_json(const std::string& json);
  std::string to_json() const;
  // Throws an Error that names the values if they are inconsistent.
  void check() const;
  // Number of layers that the hierarchical loss contrasts; 0: the loss is off.
  std::int64_t contrasted_layers() const;
};

}  // namespace millrace
