#include "tools/cli/command_line.h"

#include <millrace/pipeline/base/error.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <set>
#include <sstream>

#include <unistd.h>

namespace millrace {

namespace {

std::string flag_of(const std::string& argument) {
  return argument.starts_with("--") ? argument.substr(0, argument.find('=')) : "";
}

// How many letters must be changed, added or taken away to make one word of the other.
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      std::size_t change = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, change}));
    }
  }
  return row.back();
}

std::string nearest(const std::string& word, const std::vector<std::string>& words) {
  std::string best;
  std::size_t best_distance = 3;  // further away it is another word
  for (const std::string& candidate : words) {
    std::size_t d = distance(word, candidate);
    if (d < best_distance) {
      best_distance = d;
      best = candidate;
    }
  }
  return best;
}

std::vector<std::string> flags_of(const CLI::App& app) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  }
  return flags;
}

std::vector<const CLI::App*> subcommands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

// A file may have a line break in its name; a message has none.
std::string in_one_line(std::string_view text) {
  std::string line;
  for (char c : text) {
    if (c == '\n') {
      line += "\\n";
    } else {
      line += c;
    }
  }
  return line;
}

// CLI11 spells out every digit of the largest number where a range has no end.
std::string without_endless_range(const std::string& message) {
  constexpr std::string_view value = "Value ", range = " not in range ";
  const std::size_t from = message.find(value), to = message.find(range);
  if (from == std::string::npos || to == std::string::npos || message.size() - to < 300) {
    return message;
  }
  return message.substr(0, from) + message.substr(from + value.size(), to - from - value.size()) +
         " is too small";
}

// Lists that go over several lines, each in one line: CLI11 reads no others. Comments inside of
// them are left out.
std::string with_lists_in_one_line(std::istream& in) {
  std::string text;
  int depth = 0;
  for (std::string line; std::getline(in, line); text += depth > 0 ? ' ' : '\n') {
    char quote = 0;
    if (depth == 0 && line.find('=') == std::string::npos) {  // [part], a comment
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
  // A comma behind the last item is none of CLI11's either.
  for (std::size_t at = 0; (at = text.find(']', at)) != std::string::npos; ++at) {
    std::size_t before = at == 0 ? std::string::npos : text.find_last_not_of(' ', at - 1);
    if (before != std::string::npos && text[before] == ',') text[before] = ' ';
  }
  return text;
}

[[noreturn]] void refuse(const std::string& problem) {
  throw Error(problem).kind(ErrorKind::usage);
}

}  // namespace

CommandLine::CommandLine(std::string name, const std::string& about, const std::string& examples)
    : name_(std::move(name)), app_(about, name_) {
  app_.footer(examples);
  app_.get_formatter()->column_width(34);
  app_.add_option("--config", "read options from a TOML file; its keys are the flags")
      ->type_name("FILE");
}

CLI::App& CommandLine::subcommand(const std::string& name, const std::string& about,
                                  const std::string& examples) {
  CLI::App& app = *app_.add_subcommand(name, about);
  app.footer(examples);
  app.get_formatter()->column_width(34);
  app.add_option("--config", "read options from a TOML file; its keys are the flags")
      ->type_name("FILE");
  return app;
}

// Puts what the configuration file says behind the arguments, as flags, unless they say otherwise.
std::vector<std::string> CommandLine::with_config(std::vector<std::string> arguments) const {
  std::string file;
  std::set<std::string> given;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    std::string flag = flag_of(arguments[i]);
    if (!flag.empty()) given.insert(flag);
    if (flag != "--config") continue;
    bool joined = arguments[i].size() > flag.size();
    file = joined ? arguments[i].substr(flag.size() + 1)
                  : (i + 1 < arguments.size() ? arguments[i + 1] : "");
  }
  if (file.empty()) return arguments;
  std::ifstream in(file);
  if (!in) refuse("--config " + file + ": cannot be read");
  const CLI::App* app = &app_;
  std::string command;
  for (const std::string& argument : arguments) {
    auto all = subcommands_of(app_);
    auto found = std::ranges::find(all, argument, [](const CLI::App* a) { return a->get_name(); });
    if (found == all.end()) continue;
    app = *found;
    command = argument;
    break;
  }
  std::vector<std::string> known = flags_of(*app);
  std::istringstream lines(with_lists_in_one_line(in));
  for (const CLI::ConfigItem& item : CLI::ConfigTOML().from_config(lines)) {
    bool ours = item.parents.empty() || (item.parents.size() == 1 && item.parents[0] == command);
    if (!ours || item.name == "++" || item.name == "--") continue;
    std::string flag = "--" + item.name;
    std::ranges::replace(flag, '_', '-');
    if (std::ranges::find(known, flag) == known.end()) {
      std::string other = nearest(flag, known);
      refuse("--config " + file + ": there is no option '" + item.name + "'" +
             (other.empty() ? "" : "; did you mean '" + other.substr(2) + "'?"));
    }
    if (given.contains(flag)) continue;
    const CLI::Option* option = app->get_option(flag);
    bool is_flag = option->get_items_expected_max() == 0;
    if (is_flag) {
      std::string value = item.inputs.empty() ? "true" : item.inputs[0];
      arguments.push_back(flag + "=" + value);
    } else {
      arguments.push_back(flag);
      arguments.insert(arguments.end(), item.inputs.begin(), item.inputs.end());
    }
  }
  return arguments;
}

// One line that says what is wrong and, where it can be guessed, what was meant.
int CommandLine::explain(const CLI::ParseError& error, const std::vector<std::string>& arguments) {
  if (error.get_exit_code() == 0) return app_.exit(error);  // --help and the like
  const CLI::App* app = &app_;
  if (!app_.get_subcommands().empty()) app = app_.get_subcommands().front();
  std::string message = without_endless_range(error.what());
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    std::vector<std::string> known = flags_of(*app);
    for (const std::string& argument : arguments) {
      std::string flag = flag_of(argument);
      if (flag.empty() || std::ranges::find(known, flag) != known.end()) continue;
      std::string other = nearest(flag, known);
      message = "there is no flag " + flag + (other.empty() ? "" : "; did you mean " + other + "?");
      break;
    }
  } else if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr && app == &app_) {
    for (const std::string& argument : arguments) {
      if (argument.starts_with("-")) continue;
      std::vector<std::string> names;
      for (const CLI::App* sub : subcommands_of(app_)) names.push_back(sub->get_name());
      std::string other = nearest(argument, names);
      if (names.empty()) break;
      message = "there is no command '" + argument + "'" +
                (other.empty() ? "" : "; did you mean '" + other + "'?");
      break;
    }
  }
  std::string help = name_ + (app == &app_ ? "" : " " + app->get_name()) + " --help";
  std::fprintf(stderr, "%s: %s (see: %s)\n", name_.c_str(), in_one_line(message).c_str(),
               help.c_str());
  return 2;
}

int CommandLine::run(int argc, char** argv, const std::function<int()>& body) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  try {
    arguments = with_config(std::move(arguments));
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
    app_.parse(std::move(reversed));
    return body();
  } catch (const CLI::ParseError& error) {
    return explain(error, arguments);
  } catch (const Error& error) {
    std::fprintf(stderr, "%s: %s\n", name_.c_str(), in_one_line(error.what()).c_str());
    if (Signals::received() != 0) return 128 + Signals::received();
    return error.kind() == ErrorKind::usage ? 2 : 1;
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "%s: out of memory; try fewer --jobs\n", name_.c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", name_.c_str(), in_one_line(error.what()).c_str());
  }
  return 1;
}

std::vector<std::pair<std::string, std::string>> CommandLine::settings(const CLI::App& app) {
  std::vector<std::pair<std::string, std::string>> all;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_lnames().empty() || option->get_lnames()[0] == "help") continue;
    std::string value;
    for (const std::string& part : option->results()) value += (value.empty() ? "" : " ") + part;
    if (option->count() == 0) value = option->get_default_str();
    all.emplace_back(option->get_lnames()[0], value);
  }
  return all;
}

namespace {

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
std::string toml_value(const CLI::Option& option) {
  std::vector<std::string> values = option.results();
  if (option.count() == 0) {
    std::string text = option.get_default_str();
    if (option.get_items_expected_max() == 0 && text.empty()) text = "false";
    const bool list = text.starts_with('[') && text.ends_with(']');
    values = CLI::detail::split(list ? text.substr(1, text.size() - 2) : text, list ? ',' : '\0');
    std::erase(values, "");
  }
  const std::string type = option.get_type_name();
  const bool plain = option.get_items_expected_max() == 0 || type.starts_with("INT") ||
                     type.starts_with("UINT") || type.starts_with("FLOAT") ||
                     type.starts_with("BOOLEAN");
  std::string text;
  for (const std::string& value : values) {
    text.append(text.empty() ? "" : ", ").append(plain ? value : quoted(value));
  }
  if (!text.empty() && option.get_items_expected_max() > 1) text.insert(0, "[").append("]");
  return text;
}

}  // namespace

std::string CommandLine::toml(const CLI::App& app, const std::set<std::string>& except) {
  std::string text, group;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_lnames().empty()) continue;
    const std::string& name = option->get_lnames()[0];
    if (name == "help" || name == "config" || except.contains(name)) continue;
    if (option->get_group() != group) {
      group = option->get_group();
      text.append(text.empty() ? "" : "\n").append("# ---- ").append(group).append("\n");
    }
    const std::string value = toml_value(*option);
    text.append("# ").append(option->get_description()).append("\n");
    text.append(value.empty() ? "# " : "").append(name).append(" = ").append(value).append("\n");
  }
  return text;
}

namespace {
std::atomic<int> signal_received{0};
static_assert(std::atomic<int>::is_always_lock_free);
}  // namespace

void Signals::watch() {
  struct sigaction action {};
  action.sa_handler = [](int signal) {
    int none = 0;
    if (!signal_received.compare_exchange_strong(none, signal)) _exit(128 + signal);
  };
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
}

int Signals::received() {
  return signal_received.load(std::memory_order_relaxed);
}

}  // namespace millrace
