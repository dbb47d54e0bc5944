#include <millrace/pipeline/base/durable_file.h>
#include <millrace/pipeline/base/error.h>
#include <millrace/training/tracking/tracker.h>

#include <cmath>
#include <sstream>

#include <nlohmann/json.hpp>

namespace millrace {

double value_of(const Logs& logs, const std::string& name, double otherwise) {
  for (const auto& [key, value] : logs) {
    if (key == name) return value;
  }
  return otherwise;
}

namespace {

// The lines of an earlier run before `first_step`, without a line that was cut off when the run was
// killed.
std::string lines_before(const std::filesystem::path& path, std::int64_t first_step) {
  std::string kept;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    const auto entry = nlohmann::json::parse(line, nullptr, false);
    if (!entry.is_object() || !entry.contains("step") || !entry["step"].is_number_integer())
      continue;
    if (entry["step"].get<std::int64_t>() >= first_step) continue;
    kept.append(line).append("\n");
  }
  return kept;
}

}  // namespace

JsonLinesTracker::JsonLinesTracker(const std::filesystem::path& path, std::int64_t first_step) {
  write_durably(path, first_step > 0 ? lines_before(path, first_step) : std::string());
  file_.open(path, std::ios::app);
  if (!file_) throw Error("cannot be written").at(path.string());
}

void JsonLinesTracker::scalars(std::int64_t step, const Logs& logs) {
  nlohmann::ordered_json entry{{"step", step}};
  for (const auto& [name, value] : logs) {
    // JSON has no NaN and no infinity, so they are written as strings.
    if (std::isfinite(value)) {
      entry[name] = value;
    } else {
      entry[name] = std::isnan(value) ? "nan" : (value > 0 ? "inf" : "-inf");
    }
  }
  file_ << entry.dump() << '\n';
  file_.flush();
}

}  // namespace millrace
