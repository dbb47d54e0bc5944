#include <millrace/decoders/mesh/mesh_augment.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

namespace millrace {

void MeshAugmentation::check() const {
  const auto refuse = [](const std::string& problem) {
    throw Error("augmentation: " + problem).kind(ErrorKind::usage);
  };
  if (!(scale_low > 0 && scale_low <= scale_high && std::isfinite(scale_high))) {
    refuse("the scale must lie between two positive numbers, the lower first, but is " +
           std::to_string(scale_low) + " to " + std::to_string(scale_high));
  }
  if (!(rotation >= 0 && rotation <= 180)) {
    refuse("the rotation must be 0 to 180 degrees, but is " + std::to_string(rotation));
  }
  if (!(jitter >= 0 && jitter < 1)) {
    refuse("the jitter must be at least 0 and less than 1, but is " + std::to_string(jitter));
  }
}

void augment_mesh(const MeshAugmentation& options, Random& random, Mesh& mesh) {
  const auto between = [&](double low, double high) {
    return low + (high - low) * random.uniform();
  };
  const double angle = between(-options.rotation, options.rotation) * std::numbers::pi / 180;
  const double c = std::cos(angle), s = std::sin(angle);
  std::array<double, 3> scale{};
  for (double& factor : scale) factor = between(options.scale_low, options.scale_high);
  double reach = 0;
  for (auto& vertex : mesh.vertices) {
    const double x = vertex[0] * scale[0], y = vertex[1] * scale[1], z = vertex[2] * scale[2];
    const std::array<double, 3> turned{c * x + s * z, y, c * z - s * x};
    for (std::size_t k = 0; k < 3; ++k) {
      const double shaken = turned[k] + between(-options.jitter, options.jitter);
      vertex[k] = static_cast<float>(shaken);
      reach = std::max(reach, std::abs(shaken));
    }
  }
  if (reach <= 1) return;
  for (auto& vertex : mesh.vertices) {
    for (float& x : vertex) x = std::clamp(static_cast<float>(x / reach), -1.0F, 1.0F);
  }
}

}  // namespace millrace
