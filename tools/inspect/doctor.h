// Examines every file of a folder by its headers, and reports what a trainer would find.
#pragma once

#include "tools/inspect/probe.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace millrace {

// Minimum, median and maximum of a property.
struct Spread {
  std::vector<double> values{};
  void add(double value) { values.push_back(value); }
  double low() const, middle() const, high() const;
};

struct KindReport {
  std::int64_t files = 0, bytes = 0;
  std::map<std::string, std::int64_t> formats{};
  Spread width{}, height{}, seconds{}, frames{}, frames_per_second{}, faces{};
  std::map<std::int64_t, std::int64_t> channels{}, sample_rates_hz{};
};

struct DoctorReport {
  std::filesystem::path folder;
  std::int64_t files = 0;
  std::map<MediaKind, KindReport> kinds{};
  struct Problem {
    std::string path, reason;
  };
  std::vector<Problem> broken{};                       // cannot be opened
  std::vector<Problem> odd{};                          // can be opened, but are unusual
  std::vector<std::vector<std::string>> duplicates{};  // the same content under several names
  struct Pairs {
    std::int64_t paired = 0;
    std::vector<std::string> without_text{};
  };
  std::map<MediaKind, Pairs> pairs{};
  std::vector<std::string> texts_alone{};
  std::vector<std::string> trainers{};  // one line each
};

DoctorReport examine(const std::filesystem::path& folder, int jobs);
// As text, with at most `shown` lines of each list.
std::string to_text(const DoctorReport& report, std::size_t shown);
std::string to_json(const DoctorReport& report);

}  // namespace millrace
