// Clips made by the ffmpeg command, and what it says of them.
#pragma once

#include "tests/reference.h"

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace millrace {

inline std::string run_ffmpeg(const std::string& arguments) {
  return run_command("ffmpeg -nostdin -v error -y " + arguments);
}

// Every frame as ffmpeg decodes it: when it is shown, from the first on, and its checksum.
struct ReferenceFrames {
  std::vector<double> times;
  std::vector<std::uint32_t> checksums;

  std::int64_t size() const { return std::ssize(times); }
  // The frame on the screen.
  std::int64_t at(double seconds) const {
    std::int64_t found = 0;
    for (std::int64_t i = 0; i < size(); ++i) {
      if (times[static_cast<std::size_t>(i)] <= seconds + 1e-6) found = i;
    }
    return found;
  }
};

inline ReferenceFrames reference_frames(const std::filesystem::path& path,
                                        const std::string& filters = "") {
  std::istringstream lines(run_ffmpeg("-noautorotate -i '" + path.string() +
                                      "' -map 0:v:0 -fps_mode passthrough -enc_time_base -1 " +
                                      filters + " -f framecrc -"));
  ReferenceFrames frames;
  double tick_seconds = 0, first = 0;
  for (std::string line; std::getline(lines, line);) {
    int number = 0, base = 0;
    if (std::sscanf(line.c_str(), "#tb 0: %d/%d", &number, &base) == 2) {
      tick_seconds = static_cast<double>(number) / base;
    }
    long long dts = 0, pts = 0, duration = 0, size = 0;
    unsigned sum = 0;
    if (std::sscanf(line.c_str(), "0, %lld, %lld, %lld, %lld, 0x%x", &dts, &pts, &duration, &size,
                    &sum) != 5) {
      continue;
    }
    const double seconds = static_cast<double>(pts) * tick_seconds;
    if (frames.times.empty()) first = seconds;
    frames.times.push_back(seconds - first);
    frames.checksums.push_back(sum);
  }
  return frames;
}

}  // namespace millrace
