#include "tools/cli/toml.h"

#include <millrace/pipeline/base/error.h>

#include <sstream>

#include <CLI/CLI.hpp>

namespace millrace {

namespace {

// Joins lists that go over several lines: CLI11 reads one line at a time. Comments inside lists are
// left out.
std::string with_lists_in_one_line(std::istream& in) {
  std::string text;
  int depth = 0;
  for (std::string line; std::getline(in, line); text += depth > 0 ? ' ' : '\n') {
    char quote = 0;
    if (depth == 0 && line.find('=') == std::string::npos) {  // [section], a comment
      text += line;
      continue;
    }
    for (char c : line) {
      if (quote == 0 && c == '#') break;
      if (quote != 0) {
        if (c == quote) quote = 0;
      } else if (c == '"' || c == '\'') {
        quote = c;
      } else {
        depth += (c == '[' ? 1 : 0) - (c == ']' ? 1 : 0);
      }
      text += c;
    }
  }
  // CLI11 does not accept a comma after the last item either.
  for (std::size_t at = 0; (at = text.find(']', at)) != std::string::npos; ++at) {
    std::size_t before = at == 0 ? std::string::npos : text.find_last_not_of(' ', at - 1);
    if (before != std::string::npos && text[before] == ',') text[before] = ' ';
  }
  return text;
}

std::string quoted(const std::string& text) {
  // A literal, in which nothing is escaped: CLI11 does not take escapes back.
  if (text.find_first_of("\"\\") != std::string::npos && text.find('\'') == std::string::npos) {
    return "'" + text + "'";
  }
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + "\"";
}

// One value, a list in brackets, or nothing if there is neither a value nor a default.
std::string toml_value(const OptionInfo& option) {
  std::vector<std::string> values = option.values;
  if (values.empty()) {
    std::string text = option.default_text;
    if (option.is_flag && text.empty()) text = "false";
    const bool list = text.starts_with('[') && text.ends_with(']');
    values = CLI::detail::split(list ? text.substr(1, text.size() - 2) : text, list ? ',' : '\0');
    std::erase(values, "");
  }
  std::string text;
  for (const std::string& value : values) {
    text.append(text.empty() ? "" : ", ").append(option.is_number ? value : quoted(value));
  }
  if (!text.empty() && option.is_list) text.insert(0, "[").append("]");
  return text;
}

}  // namespace

std::vector<TomlItem> read_toml(std::istream& in) {
  std::istringstream lines(with_lists_in_one_line(in));
  std::vector<TomlItem> items;
  try {
    for (const CLI::ConfigItem& item : CLI::ConfigTOML().from_config(lines)) {
      if (item.parents.size() > 1 || item.name == "++" || item.name == "--") continue;
      items.push_back({.section = item.parents.empty() ? "" : item.parents[0],
                       .name = item.name,
                       .values = item.inputs});
    }
  } catch (const CLI::Error& error) {
    throw Error(error.what()).kind(ErrorKind::usage);
  }
  return items;
}

std::string write_toml(const std::vector<OptionInfo>& options,
                       const std::set<std::string>& except) {
  std::string text, group;
  for (const OptionInfo& option : options) {
    if (option.name.empty() || option.name == "config" || except.contains(option.name)) continue;
    if (option.group != group) {
      group = option.group;
      text.append(text.empty() ? "" : "\n").append("# ---- ").append(group).append("\n");
    }
    const std::string value = toml_value(option);
    text.append("# ").append(option.help).append("\n");
    text.append(value.empty() ? "# " : "").append(option.name).append(" = ").append(value);
    text.append("\n");
  }
  return text;
}

}  // namespace millrace
