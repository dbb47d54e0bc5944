#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/mulan/spectrogram.h>

#include <algorithm>

namespace millrace {

SpectrogramImpl::SpectrogramImpl(SpectrogramOptions options) : options_(std::move(options)) {
  window_ = register_buffer("window", torch::hann_window(options_.win_length));
}

torch::Tensor SpectrogramImpl::forward(const torch::Tensor& sound) {
  torch::Tensor padded = sound;
  if (options_.pad > 0) padded = torch::constant_pad_nd(sound, {options_.pad, options_.pad});
  const torch::Tensor spectrum =
      at::stft(padded, options_.n_fft, options_.hop_length, options_.win_length, window_,
               options_.center, options_.pad_mode, /*normalized=*/false, /*onesided=*/true,
               /*return_complex=*/true);
  if (options_.power == 1) return spectrum.abs();
  return spectrum.abs().pow(options_.power);
}

torch::Tensor mask_band(const torch::Tensor& spectrogram, std::int64_t widest, std::int64_t axis,
                        Draws& draws) {
  if (widest < 1) return spectrogram;
  const std::int64_t size = spectrogram.size(axis);
  // In float32 as in torchaudio, so that the truncation below gives the same integers.
  const torch::Tensor width = draws.uniform({1}) * widest;
  const torch::Tensor start = draws.uniform({1}) * (size - width);
  const auto first = start.to(torch::kInt64).item<std::int64_t>();
  const auto end = first + width.to(torch::kInt64).item<std::int64_t>();
  const std::int64_t begin = std::clamp<std::int64_t>(first, 0, size);
  const std::int64_t length = std::clamp<std::int64_t>(end, begin, size) - begin;
  torch::Tensor masked = spectrogram.clone();
  masked.narrow(axis, begin, length).zero_();
  return masked;
}

}  // namespace millrace
