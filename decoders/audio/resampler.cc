#include "resampler.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace millrace::detail {
namespace {

// swresample's filter reaches 16 input samples to either side, more when the rate goes down.
constexpr std::int64_t filter_reach = 64;
constexpr std::size_t most_channels = 64;  // the limit of swresample

}  // namespace

ResamplerStart aligned_start(const ResamplerSetup& setup, std::int64_t wanted_output) {
  const std::int64_t from = setup.from_rate_hz, to = setup.to_rate_hz;
  if (from == to) return {wanted_output, wanted_output};
  const std::int64_t divisor = std::gcd(from, to);
  const std::int64_t from_period = from / divisor, to_period = to / divisor;
  const std::int64_t reach_output = filter_reach * std::max<std::int64_t>(1, to / from + 1);
  const std::int64_t periods = std::max<std::int64_t>(0, wanted_output - reach_output) / to_period;
  return {periods * from_period, periods * to_period};
}

bool Resampler::start(const ResamplerSetup& setup, const AVChannelLayout& from,
                      std::int64_t to_drop) {
  if (setup.to_channels > static_cast<int>(most_channels)) return false;
  const bool is_same = context_ != nullptr && setup == setup_;
  if (!is_same) {
    setup_ = setup;
    AVChannelLayout to{};
    if (setup.to_channels == setup.from_channels) {
      if (av_channel_layout_copy(&to, &from) < 0) return false;
    } else {
      av_channel_layout_default(&to, setup.to_channels);
    }
    AVChannelLayout known{};
    if (from.order == AV_CHANNEL_ORDER_UNSPEC) {
      av_channel_layout_default(&known, setup.from_channels);
      if (setup.to_channels == setup.from_channels) av_channel_layout_copy(&to, &known);
    } else {
      av_channel_layout_copy(&known, &from);
    }
    SwrContext* raw = nullptr;
    const int code = swr_alloc_set_opts2(
        &raw, &to, static_cast<AVSampleFormat>(setup.to_format), setup.to_rate_hz, &known,
        static_cast<AVSampleFormat>(setup.from_format), setup.from_rate_hz, 0, nullptr);
    context_.reset(raw);
    av_channel_layout_uninit(&to);
    av_channel_layout_uninit(&known);
    if (code < 0) return false;
  }
  // Called again for each file: it empties the buffers and keeps the filter bank.
  if (swr_init(context_.get()) >= 0 &&
      swr_drop_output(context_.get(), static_cast<int>(to_drop)) >= 0) {
    return true;
  }
  context_.reset();
  return false;
}

template <typename T>
void Resampler::convert(const AVFrame* frame, T* to, std::int64_t stride, std::int64_t capacity,
                        std::int64_t& valid) {
  const auto channels = static_cast<std::size_t>(setup_.to_channels);
  std::array<std::uint8_t*, most_channels> out{};
  int made = 1;
  while (valid < capacity && made > 0) {
    for (std::size_t c = 0; c < channels; ++c) {
      out[c] = reinterpret_cast<std::uint8_t*>(to + static_cast<std::int64_t>(c) * stride + valid);
    }
    const int room = static_cast<int>(std::min<std::int64_t>(capacity - valid, 1 << 20));
    if (frame == nullptr) {
      made = swr_convert(context_.get(), out.data(), room, nullptr, 0);
    } else {
      made = swr_convert(context_.get(), out.data(), room,
                         const_cast<const std::uint8_t**>(frame->extended_data), frame->nb_samples);
    }
    valid += std::max(made, 0);
    if (frame != nullptr) return;
  }
}

template void Resampler::convert<float>(const AVFrame*, float*, std::int64_t, std::int64_t,
                                        std::int64_t&);
template void Resampler::convert<std::int16_t>(const AVFrame*, std::int16_t*, std::int64_t,
                                               std::int64_t, std::int64_t&);

Resampler* ResamplerCache::get(const ResamplerSetup& setup, const AVChannelLayout& from,
                               std::int64_t to_drop) {
  auto found = std::ranges::find(all_, setup, &Resampler::setup);
  if (found != all_.end()) {
    all_.splice(all_.begin(), all_, found);
  } else {
    if (all_.size() >= most) all_.pop_back();
    all_.emplace_front();
  }
  if (all_.front().start(setup, from, to_drop)) return &all_.front();
  all_.pop_front();
  return nullptr;
}

}  // namespace millrace::detail
