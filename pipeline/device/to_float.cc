#include <millrace/pipeline/device/to_float.h>

#include <string>

// Compiled once per instruction set by Highway's foreach_target; the best one is chosen at run
// time. -ffp-contract=off (see CMakeLists.txt) keeps multiply and add apart.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "millrace/pipeline/device/to_float.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace millrace::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Converts one vector of bytes of one channel, one byte per float lane.
template <class D, class V>
HWY_INLINE void convert(D floats, V bytes, float scale, float shift, float* to) {
  const hn::Rebind<std::int32_t, D> ints;
  auto value = hn::ConvertTo(floats, hn::PromoteTo(ints, bytes));
  hn::StoreU(hn::Add(hn::Mul(value, hn::Set(floats, scale)), hn::Set(floats, shift)), floats, to);
}

// Channels to planes. Returns the number of pixels done; the caller converts the rest one by one.
std::int64_t planar(const ToFloat& c, const std::uint8_t* from, std::int64_t pixels, int channels,
                    float* to) {
  const hn::ScalableTag<float> floats;
  const hn::Rebind<std::uint8_t, decltype(floats)> bytes;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(floats));
  std::int64_t done = 0;
  for (; done + lanes <= pixels; done += lanes) {
    const std::uint8_t* at = from + done * channels;
    hn::Vec<decltype(bytes)> v[4];
    if (channels == 1) {
      v[0] = hn::LoadU(bytes, at);
    } else if (channels == 2) {
      hn::LoadInterleaved2(bytes, at, v[0], v[1]);
    } else if (channels == 3) {
      hn::LoadInterleaved3(bytes, at, v[0], v[1], v[2]);
    } else {
      hn::LoadInterleaved4(bytes, at, v[0], v[1], v[2], v[3]);
    }
    for (int i = 0; i < channels; ++i) {
      convert(floats, v[i], c.scale[static_cast<std::size_t>(i)],
              c.shift[static_cast<std::size_t>(i)], to + i * pixels + done);
    }
  }
  return done;
}

}  // namespace millrace::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace {

HWY_EXPORT(planar);

Shape to_float_shape(const ToFloat& conversion, const Shape& sample) {
  std::int64_t channels = sample.empty() ? 0 : sample[sample.rank() - 1];
  if (sample.rank() < 2 || channels < 1 || channels > 4) {
    throw Error(
        "to_float needs samples of [..., height, width, channels] with 1 to 4 channels, "
        "not " +
        to_string(sample))
        .kind(ErrorKind::usage);
  }
  if (!conversion.channels_first) return sample;
  Shape result{channels};
  for (int axis = 0; axis + 1 < sample.rank(); ++axis) result.push_back(sample[axis]);
  return result;
}

void to_float(const ToFloat& conversion, const std::uint8_t* from, std::int64_t pixels,
              int channels, float* to) {
  const ToFloatElement element;
  std::int64_t done = conversion.channels_first
                          ? HWY_DYNAMIC_DISPATCH(planar)(conversion, from, pixels, channels, to)
                          : 0;
  for (std::int64_t p = done; p < pixels; ++p) {
    for (int c = 0; c < channels; ++c) {
      auto channel = static_cast<std::size_t>(c);
      float value =
          element(from[p * channels + c], conversion.scale[channel], conversion.shift[channel]);
      to[conversion.channels_first ? c * pixels + p : p * channels + c] = value;
    }
  }
}

}  // namespace millrace
#endif  // HWY_ONCE
