#include "tools/samples/digits.h"

#include <millrace/pipeline/base/random.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace millrace {

namespace {

struct Point {
  double x, y;
};
using Stroke = std::vector<Point>;

// Part of an ellipse, from one angle to another, in turns; 0 is to the right, and y grows downward.
Stroke arc(double x, double y, double across, double down, double from, double to) {
  constexpr int pieces = 20;
  Stroke stroke;
  for (int i = 0; i <= pieces; ++i) {
    const double angle = 2 * std::numbers::pi * (from + (to - from) * i / pieces);
    stroke.push_back({x + across * std::cos(angle), y + down * std::sin(angle)});
  }
  return stroke;
}

// Strokes in a box of 1 x 1; two variants of digits that people write differently.
std::vector<Stroke> strokes_of(int digit, bool other) {
  switch (digit) {
    case 0:
      return {arc(0.5, 0.5, other ? 0.26 : 0.34, 0.44, 0, 1)};
    case 1:
      if (other) return {{{0.5, 0.06}, {0.5, 0.94}}};
      return {{{0.3, 0.26}, {0.54, 0.06}, {0.54, 0.94}}, {{0.32, 0.94}, {0.76, 0.94}}};
    case 2: {
      Stroke top = arc(0.5, 0.3, 0.3, 0.24, -0.5, 0.1);
      top.push_back({0.2, 0.94});
      top.push_back({0.82, 0.94});
      return {top};
    }
    case 3:
      if (other) {
        return {{{0.22, 0.06}, {0.76, 0.06}, {0.46, 0.4}},
                arc(0.46, 0.67, 0.32, 0.27, -0.25, 0.42)};
      }
      return {arc(0.46, 0.28, 0.27, 0.22, -0.42, 0.25), arc(0.46, 0.71, 0.32, 0.23, -0.25, 0.42)};
    case 4:
      if (other) return {{{0.3, 0.06}, {0.22, 0.56}, {0.82, 0.56}}, {{0.68, 0.3}, {0.68, 0.94}}};
      return {{{0.62, 0.94}, {0.62, 0.06}, {0.16, 0.66}, {0.86, 0.66}}};
    case 5:
      return {{{0.76, 0.06}, {0.3, 0.06}, {0.26, 0.46}},
              arc(0.46, 0.66, 0.32, other ? 0.24 : 0.28, -0.36, 0.4)};
    case 6:
      return {arc(0.5, 0.68, 0.28, 0.26, 0, 1),
              {{0.66, 0.06}, {other ? 0.44 : 0.36, 0.26}, {0.23, 0.6}}};
    case 7:
      if (other) {
        return {{{0.18, 0.06}, {0.8, 0.06}, {0.4, 0.94}}, {{0.34, 0.48}, {0.72, 0.48}}};
      }
      return {{{0.18, 0.06}, {0.8, 0.06}, {0.4, 0.94}}};
    case 8:
      return {arc(0.5, 0.28, 0.23, 0.22, 0, 1), arc(0.5, 0.72, other ? 0.32 : 0.27, 0.22, 0, 1)};
    default:
      if (other) return {arc(0.5, 0.32, 0.28, 0.26, 0, 1), {{0.78, 0.32}, {0.72, 0.94}}};
      return {arc(0.5, 0.32, 0.28, 0.26, 0, 1), arc(0.34, 0.4, 0.44, 0.54, 0, 0.2)};
  }
}

double distance(const Point& p, const Point& a, const Point& b) {
  const double dx = b.x - a.x, dy = b.y - a.y, length = dx * dx + dy * dy;
  const double along =
      length > 0 ? std::clamp(((p.x - a.x) * dx + (p.y - a.y) * dy) / length, 0.0, 1.0) : 0.0;
  return std::hypot(p.x - a.x - along * dx, p.y - a.y - along * dy);
}

// One digit in one handwriting: strokes in pixels, around its centre.
struct Glyph {
  std::vector<Stroke> strokes;
  double half_width = 1, reach = 0;

  Glyph(int digit, double height, double spread, Random& random) {
    auto vary = [&](double most) { return spread * most * (2 * random.uniform() - 1); };
    strokes = strokes_of(digit, random.uniform() < 0.5 * spread);
    const double slant = vary(0.18), turn = vary(0.12), wide = 0.8 + vary(0.12);
    const double tall = height * (1 + vary(0.08));
    half_width = height * (0.055 + 0.025 * (0.5 + spread * (random.uniform() - 0.5)));
    const double c = std::cos(turn), s = std::sin(turn);
    for (Stroke& stroke : strokes) {
      const double shift_x = vary(0.02), shift_y = vary(0.02);
      for (Point& p : stroke) {
        const double y = p.y - 0.5 + shift_y, x = (p.x - 0.5 + shift_x) * wide - slant * y;
        p = {tall * (c * x - s * y), tall * (s * x + c * y)};
        reach = std::max({reach, std::abs(p.x), std::abs(p.y)});
      }
    }
    reach += half_width;
  }

  void draw(std::uint8_t* frame, std::int64_t size, const Point& at) const {
    auto limit = [&](double v) {
      return std::clamp(static_cast<std::int64_t>(std::floor(v)), std::int64_t{0}, size);
    };
    for (std::int64_t y = limit(at.y - reach - 1); y < limit(at.y + reach + 2); ++y) {
      for (std::int64_t x = limit(at.x - reach - 1); x < limit(at.x + reach + 2); ++x) {
        const Point p{static_cast<double>(x) + 0.5 - at.x, static_cast<double>(y) + 0.5 - at.y};
        double nearest = reach * 4;
        for (const Stroke& stroke : strokes) {
          for (std::size_t i = 0; i + 1 < stroke.size(); ++i) {
            nearest = std::min(nearest, distance(p, stroke[i], stroke[i + 1]));
          }
        }
        const double ink = std::clamp(half_width + 0.5 - nearest, 0.0, 1.0);
        std::uint8_t& pixel = frame[y * size + x];
        pixel = std::max(pixel, static_cast<std::uint8_t>(std::lround(255 * ink)));
      }
    }
  }
};

struct Direction {
  const char* name;
  double x, y;
};
constexpr std::array<Direction, 4> directions{
    {{"right", 1, 0}, {"left", -1, 0}, {"down", 0, 1}, {"up", 0, -1}}};

// Position at a time of a point that starts at `start` and bounces between two walls.
double bounced(double start, double speed, std::int64_t steps, double low, double high) {
  const double width = high - low;
  if (width <= 0) return (low + high) / 2;
  const double far = start - low + speed * static_cast<double>(steps);
  const double within = far - 2 * width * std::floor(far / (2 * width));
  return low + (within <= width ? within : 2 * width - within);
}

}  // namespace

DigitClip draw_digit_clip(std::int64_t index, const DigitClipOptions& o) {
  Random random(o.seed, 0, index, "digits");
  DigitClip clip;
  clip.pixels.resize(static_cast<std::size_t>(o.frames * o.size * o.size));
  const auto side = static_cast<double>(o.size);
  const double height = side * (o.digits > 1 ? 0.4 : 0.5);
  for (int i = 0; i < o.digits; ++i) {
    const auto digit = static_cast<int>(random.below(10));
    const Direction& direction = directions[static_cast<std::size_t>(random.below(4))];
    const Glyph glyph(digit, height, o.spread, random);
    const double low = glyph.reach, high = side - glyph.reach;
    // Starts in the half that it leaves, so that it first moves in the direction of the caption.
    auto start = [&](double way) {
      const double half = (high - low) / 2, where = random.uniform();
      if (way == 0) return low + 2 * half * (0.5 + o.spread * (where - 0.5));
      return way > 0 ? low + half * o.spread * where : high - half * o.spread * where;
    };
    const Point at{start(direction.x), start(direction.y)};
    const double speed = side * (0.03 + 0.03 * (0.5 + o.spread * (random.uniform() - 0.5)));
    for (std::int64_t t = 0; t < o.frames; ++t) {
      glyph.draw(clip.pixels.data() + t * o.size * o.size, o.size,
                 {bounced(at.x, speed * direction.x, t, low, high),
                  bounced(at.y, speed * direction.y, t, low, high)});
    }
    clip.digits.push_back(static_cast<std::uint8_t>(digit));
    clip.caption += std::string(i > 0 ? " and " : "") + "the digit " + std::to_string(digit) +
                    " moves " + direction.name;
  }
  return clip;
}

}  // namespace millrace
