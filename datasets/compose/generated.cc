#include <millrace/datasets/compose/generated.h>

#include <chrono>

namespace millrace {

GeneratedImages::GeneratedImages(GeneratedOptions options)
    : options_(options),
      schema_{{.name = "image", .dtype = DType::uint8, .shape = options.shape},
              {.name = "label", .dtype = DType::int64, .shape = {}}} {
  if (options.count < 0 || options.work_us < 0 || !options.shape.is_fixed()) {
    throw Error("generated images need a count and a work_us of at least 0 and a fixed shape")
        .kind(ErrorKind::usage);
  }
}

Status GeneratedImages::load(std::int64_t index, const LoadContext& context, Sample& sample) const {
  auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(options_.work_us);
  // A sample is bad in all epochs or in none.
  if (Random(context.seed, 0, index, "bad").uniform() < options_.bad_fraction) {
    return Error("generated to be bad").at(describe(index)).stage("generate");
  }
  auto pixels = sample.out("image").as<std::uint8_t>();
  Random random = context.random("noise");
  std::uint32_t noise = 0;
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    if (i % 16 == 0) noise = random();
    pixels[i] = static_cast<std::uint8_t>(i * 255 / pixels.size() + ((noise >> (i % 16)) & 7));
  }
  sample.out("label").as<std::int64_t>()[0] = index;
  while (std::chrono::steady_clock::now() < until && !context.cancelled()) {
  }
  return {};
}

std::string GeneratedImages::describe(std::int64_t index) const {
  return "generated image " + std::to_string(index);
}

}  // namespace millrace
