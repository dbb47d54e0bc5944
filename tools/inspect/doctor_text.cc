// The doctor's report as text and as JSON.
#include "tools/cli/progress.h"
#include "tools/inspect/doctor.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace millrace {

namespace {

using nlohmann::json;

std::string counted(const std::map<std::string, std::int64_t>& counts) {
  std::string text;
  for (const auto& [name, count] : counts) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, name);
  }
  return text;
}

std::string counted(const std::map<std::int64_t, std::int64_t>& counts, const char* unit) {
  std::string text;
  for (const auto& [value, count] : counts) {
    text += fmt::format("{}{} x {}{}", text.empty() ? "" : ", ", count, value, unit);
  }
  return text;
}

std::string spread(const char* name, const Spread& s, const char* unit) {
  if (s.values.empty()) return "";
  if (s.low() == s.high()) return fmt::format("  {:<10} {:.4g}{}\n", name, s.low(), unit);
  return fmt::format("  {:<10} {:.4g} to {:.4g}{}, middle {:.4g}\n", name, s.low(), s.high(), unit,
                     s.middle());
}

template <typename List, typename Line>
std::string listed(const char* title, const List& list, std::size_t shown, Line line) {
  if (list.empty()) return "";
  std::string text = fmt::format("{}: {}\n", title, list.size());
  for (std::size_t i = 0; i < list.size() && i < shown; ++i) text += "  " + line(list[i]) + "\n";
  if (list.size() > shown)
    text += fmt::format("  ... and {} more (see --all)\n", list.size() - shown);
  return text;
}

json to_json(const Spread& s) {
  if (s.values.empty()) return nullptr;
  return {{"low", s.low()}, {"middle", s.middle()}, {"high", s.high()}, {"known", s.values.size()}};
}

}  // namespace

std::string to_text(const DoctorReport& report, std::size_t shown) {
  std::string text = fmt::format("{}: {} files\n", report.folder.string(), report.files);
  for (const auto& [kind, k] : report.kinds) {
    text +=
        fmt::format("{}: {}, {}\n", name_of(kind), k.files, in_bytes(static_cast<double>(k.bytes)));
    if (kind == MediaKind::other) continue;
    text += "  formats    " + counted(k.formats) + "\n";
    text += spread("width", k.width, "") + spread("height", k.height, "");
    text += spread(kind == MediaKind::audio ? "samples" : "frames", k.frames, "");
    text += spread("length", k.seconds, " s") + spread("rate", k.frames_per_second, " frames/s");
    text += spread("faces", k.faces, "");
    if (!k.channels.empty()) text += "  channels   " + counted(k.channels, "") + "\n";
    if (!k.sample_rates_hz.empty()) {
      text += "  rates      " + counted(k.sample_rates_hz, " Hz") + "\n";
    }
  }
  auto problem = [](const DoctorReport::Problem& p) { return p.path + ": " + p.reason; };
  text += listed("cannot be read", report.broken, shown, problem);
  text += listed("odd", report.odd, shown, problem);
  text += listed("the same content twice", report.duplicates, shown,
                 [](const std::vector<std::string>& paths) {
                   std::string line;
                   for (const auto& path : paths) line += (line.empty() ? "" : " = ") + path;
                   return line;
                 });
  auto as_is = [](const std::string& line) { return line; };
  for (const auto& [kind, pairs] : report.pairs) {
    if (pairs.paired == 0) continue;
    text += fmt::format("{} with a text of the same name: {}\n", name_of(kind), pairs.paired);
    text += listed("  without one", pairs.without_text, shown, as_is);
  }
  text += listed("texts without a medium", report.texts_alone, shown, as_is);
  text += "what the trainers would do:\n";
  for (const std::string& line : report.trainers) text += "  " + line + "\n";
  return text;
}

std::string to_json(const DoctorReport& report) {
  json result{{"folder", report.folder.string()},
              {"files", report.files},
              {"trainers", report.trainers},
              {"duplicates", report.duplicates},
              {"texts_alone", report.texts_alone}};
  for (const auto& [kind, k] : report.kinds) {
    json& to = result["kinds"][name_of(kind)];
    to = {{"files", k.files}, {"bytes", k.bytes}, {"formats", k.formats}};
    for (const auto& [name, values] : {std::pair{"width", &k.width},
                                       {"height", &k.height},
                                       {"seconds", &k.seconds},
                                       {"frames", &k.frames},
                                       {"frames_per_second", &k.frames_per_second},
                                       {"faces", &k.faces}}) {
      if (!values->values.empty()) to[name] = to_json(*values);
    }
    for (const auto& [value, n] : k.channels) to["channels"][std::to_string(value)] = n;
    for (const auto& [value, n] : k.sample_rates_hz)
      to["sample_rates_hz"][std::to_string(value)] = n;
  }
  for (const auto& [name, list] : {std::pair{"broken", &report.broken}, {"odd", &report.odd}}) {
    result[name] = json::array();
    for (const auto& p : *list) result[name].push_back({{"path", p.path}, {"reason", p.reason}});
  }
  for (const auto& [kind, pairs] : report.pairs) {
    result["pairs"][name_of(kind)] = {{"paired", pairs.paired},
                                      {"without_text", pairs.without_text}};
  }
  return result.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace millrace
