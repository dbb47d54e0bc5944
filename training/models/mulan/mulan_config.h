// The constructor arguments of MuLaN, with the names and defaults of musiclm-pytorch 0.2.8. From
// JSON for parity fixtures and checkpoints, from flags in tools/train_mulan.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace millrace {

// What both transformers have.
struct MulanTransformerConfig {
  std::int64_t dim = 0;  // must be given
  std::int64_t depth = 0;
  std::int64_t dim_head = 64, heads = 8;
  double attn_dropout = 0;
  double ff_mult = 4;
  double ff_dropout = 0;
};

// AudioSpectrogramTransformer.
struct MulanAudioConfig : MulanTransformerConfig {
  std::array<std::int64_t, 2> patch_size{16, 16};  // of frequencies, of times
  bool accept_spec = false;                        // it is given spectrograms instead of sound
  bool accept_spec_time_first = true;
  std::int64_t spec_n_fft = 128;
  double spec_power = 2;
  std::int64_t spec_win_length = 24;
  std::optional<std::int64_t> spec_hop_length{};  // unless given: half a window
  std::int64_t spec_pad = 0;
  bool spec_center = true;
  std::string spec_pad_mode = "reflect";
  // Taken for the hop length of a stretch that is never done: in the package too.
  double spec_aug_stretch_factor = 0.8;
  std::int64_t spec_aug_freq_mask = 80, spec_aug_time_mask = 80;
  double patch_dropout_prob = 0.25;

  std::int64_t hop_length() const { return spec_hop_length.value_or(spec_win_length / 2); }
  // Rows of a spectrogram.
  std::int64_t frequencies() const { return spec_n_fft / 2 + 1; }
  // Columns of the spectrogram of so many samples of sound.
  std::int64_t times(std::int64_t samples) const;
  // The fewest samples that fill one column of patches.
  std::int64_t fewest_samples() const;
};

struct MulanTextConfig : MulanTransformerConfig {
  std::int64_t num_tokens = 49'408;  // CLIP's
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
  bool spec_augment = true;  // masks of spectrograms in training; the package always has them

  // Throws an Error that names the argument if one is unknown or of another type.
  static MulanConfig from_json(const std::string& json);
  std::string to_json() const;
  // Throws an Error that names the numbers if they do not fit each other.
  void check() const;
  // How many layers are contrasted beside the latents; 0: none.
  std::int64_t contrasted_layers() const;
};

}  // namespace millrace
