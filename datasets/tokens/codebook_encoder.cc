#include <millrace/datasets/arrays/memmap.h>
#include <millrace/datasets/caches/checksum.h>
#include <millrace/datasets/tokens/token_encoder.h>
#include <millrace/pipeline/base/error.h>

#include <algorithm>
#include <cmath>
#include <thread>
#include <utility>
#include <vector>

namespace millrace {

using namespace detail;

namespace {

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& problem) {
  throw Error(problem).at(path.string()).stage("codebook").kind(ErrorKind::usage);
}

class Codebook : public TokenEncoder {
 public:
  Codebook(const std::filesystem::path& path, const CodebookOptions& options);

  std::string name() const override { return name_; }
  std::string hash() const override { return hash_; }
  std::int64_t vocabulary() const override { return entries_; }
  Shape token_shape(const Shape& sample) const override;
  Array encode(const Array& batch) const override;

 private:
  void encode_sample(const std::uint8_t* pixels, const Shape& sample, std::int64_t* tokens) const;
  std::int64_t nearest(const float* patch, float* distances) const;

  std::string name_, hash_;
  CodebookOptions options_;
  std::int64_t entries_ = 0, length_ = 0;
  std::vector<float>
      by_element_;  // [length, entries]: transposed, so the inner loop runs over entries
  std::vector<float> half_norms_;
};

Codebook::Codebook(const std::filesystem::path& path, const CodebookOptions& options)
    : options_(options) {
  Array vectors = NpyDataset(path, {}).rows();
  if (vectors.shape().rank() != 2 || vectors.dtype() != DType::float32 || vectors.elements() == 0) {
    refuse(path, "a codebook is float32 [entries, values], but this is " + to_string(vectors));
  }
  entries_ = vectors.shape()[0];
  length_ = vectors.shape()[1];
  std::int64_t per_pixel = options_.channels * options_.frames;
  if (options_.patch == 0) {
    auto side = std::sqrt(static_cast<double>(length_) / static_cast<double>(per_pixel));
    options_.patch = std::llround(side);
  }
  if (options_.patch * options_.patch * per_pixel != length_) {
    refuse(path, "its vectors have " + std::to_string(length_) + " values, which is no patch of " +
                     std::to_string(options_.channels) + " channels and " +
                     std::to_string(options_.frames) + " frames; give the patch's size");
  }
  auto values = vectors.as<const float>();
  by_element_.resize(values.size());
  half_norms_.assign(static_cast<std::size_t>(entries_), 0);
  for (std::int64_t k = 0; k < entries_; ++k) {
    for (std::int64_t d = 0; d < length_; ++d) {
      float value = values[static_cast<std::size_t>(k * length_ + d)];
      if (!std::isfinite(value)) refuse(path, "entry " + std::to_string(k) + " is not finite");
      by_element_[static_cast<std::size_t>(d * entries_ + k)] = value;
      half_norms_[static_cast<std::size_t>(k)] += 0.5F * value * value;
    }
  }
  hash_ = "xxh3:" + to_hex(checksum_of(std::as_bytes(values)));
  name_ = "codebook of " + std::to_string(entries_) + " patches of " +
          std::to_string(options_.patch) + " x " + std::to_string(options_.patch) +
          (options_.frames > 1 ? " x " + std::to_string(options_.frames) + " frames" : "");
}

Shape Codebook::token_shape(const Shape& sample) const {
  bool video = sample.rank() == 4;
  std::int64_t p = options_.patch, f = options_.frames;
  bool fits = (video || (sample.rank() == 3 && f == 1)) && sample.is_fixed() &&
              sample[sample.rank() - 1] == options_.channels && sample[video ? 1 : 0] % p == 0 &&
              sample[video ? 2 : 1] % p == 0 && (!video || sample[0] % f == 0);
  if (!fits) {
    throw Error("samples of " + to_string(sample) + " cannot be cut into patches of " +
                std::to_string(p) + " x " + std::to_string(p) + " pixels, " +
                std::to_string(options_.channels) + " channels and " + std::to_string(f) +
                " frames")
        .stage("codebook")
        .kind(ErrorKind::usage)
        .hint("Choose a --size and --frames that are multiples of the patch");
  }
  if (video) return {sample[0] / f, sample[1] / p, sample[2] / p};
  return {sample[0] / p, sample[1] / p};
}

// |x - c|^2 = |x|^2 - 2 (x . c - |c|^2 / 2), so the nearest entry has the greatest bracket. Every
// entry is summed in the same order, so the result does not depend on the vector width.
std::int64_t Codebook::nearest(const float* patch, float* scores) const {
  auto entries = static_cast<std::size_t>(entries_);
  for (std::size_t k = 0; k < entries; ++k) scores[k] = -half_norms_[k];
  for (std::int64_t d = 0; d < length_; ++d) {
    const float value = patch[d];
    const float* elements = by_element_.data() + static_cast<std::size_t>(d) * entries;
    for (std::size_t k = 0; k < entries; ++k) scores[k] += value * elements[k];
  }
  return std::max_element(scores, scores + entries) - scores;
}

void Codebook::encode_sample(const std::uint8_t* pixels, const Shape& sample,
                             std::int64_t* tokens) const {
  bool video = sample.rank() == 4;
  std::int64_t height = sample[video ? 1 : 0], width = sample[video ? 2 : 1];
  std::int64_t c = options_.channels, p = options_.patch, f = options_.frames;
  std::vector<float> patch(static_cast<std::size_t>(length_));
  std::vector<float> scores(static_cast<std::size_t>(entries_));
  for (std::int64_t t = 0; t < (video ? sample[0] : 1); t += f) {
    for (std::int64_t y = 0; y < height; y += p) {
      for (std::int64_t x = 0; x < width; x += p) {
        float* to = patch.data();
        for (std::int64_t dt = 0; dt < f; ++dt) {
          for (std::int64_t dy = 0; dy < p; ++dy) {
            const std::uint8_t* from = pixels + (((t + dt) * height + y + dy) * width + x) * c;
            for (std::int64_t i = 0; i < p * c; ++i) *to++ = static_cast<float>(from[i]) / 255.0F;
          }
        }
        *tokens++ = nearest(patch.data(), scores.data());
      }
    }
  }
}

Array Codebook::encode(const Array& batch) const {
  Shape sample = batch.shape().without_front();
  Shape shape = token_shape(sample);
  std::int64_t rows = batch.shape()[0];
  Array tokens = Array::empty(DType::int64, shape.with_front(rows));
  auto pixels = batch.as<const std::uint8_t>();
  auto out = tokens.as<std::int64_t>();
  auto work = [&](std::int64_t first, std::int64_t step) {
    for (std::int64_t i = first; i < rows; i += step) {
      encode_sample(pixels.data() + i * sample.elements(), sample,
                    out.data() + i * shape.elements());
    }
  };
  std::int64_t threads =
      std::clamp<std::int64_t>(options_.threads, 1, std::max<std::int64_t>(rows, 1));
  std::vector<std::jthread> helpers;
  for (std::int64_t i = 1; i < threads; ++i) helpers.emplace_back(work, i, threads);
  work(0, threads);
  helpers.clear();
  return tokens;
}

}  // namespace

std::shared_ptr<const TokenEncoder> load_codebook(const std::filesystem::path& path,
                                                  const CodebookOptions& options) {
  return std::make_shared<Codebook>(path, options);
}

}  // namespace millrace
