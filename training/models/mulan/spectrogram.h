// Spectrograms, and the masks that hide parts of them in training. Equal to torchaudio's transforms
// Spectrogram, FrequencyMasking and TimeMasking.
//
//   Spectrogram spectrogram(SpectrogramOptions{.n_fft = 400, .hop_length = 160});
//   torch::Tensor power = spectrogram->forward(sound);                    // [batch, 201, times]
//   Draws draws;                                                          // torch's generator
//   power = mask_band(power, 80, -2, draws);                              // of frequencies
#pragma once

#include <millrace/training/models/module/random_source.h>

#include <cstdint>
#include <string>

#include <torch/nn/module.h>

namespace millrace {

struct SpectrogramOptions {
  std::int64_t n_fft = 400;
  std::int64_t win_length = 400;
  std::int64_t hop_length = 200;
  double power = 2;  // exponent of the magnitude
  std::int64_t pad = 0;
  bool center = true;
  std::string pad_mode = "reflect";
};

class SpectrogramImpl : public torch::nn::Module {
 public:
  explicit SpectrogramImpl(SpectrogramOptions options);
  // [batch, samples] to [batch, n_fft / 2 + 1, times]
  torch::Tensor forward(const torch::Tensor& sound);

 private:
  SpectrogramOptions options_;
  torch::Tensor window_;
};
TORCH_MODULE(Spectrogram);

// Zeroes one random band along `axis`: -2 (frequencies) or -1 (time). The band is the same for the
// whole batch. Its width is less than `widest` and at most the size of the axis.
torch::Tensor mask_band(const torch::Tensor& spectrogram, std::int64_t widest, std::int64_t axis,
                        Draws& draws);

}  // namespace millrace
