#include "tools/cli/command_line.h"

#include "tools/cli/hints.h"
#include "tools/cli/signals.h"
#include "tools/cli/toml.h"

#include <millrace/pipeline/base/error.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <new>

namespace millrace {

namespace {

std::string flag_of(const std::string& argument) {
  return argument.starts_with("--") ? argument.substr(0, argument.find('=')) : "";
}

std::vector<std::string> flags_of(const std::vector<OptionInfo>& options) {
  std::vector<std::string> flags{"--help", "--version"};
  for (const OptionInfo& option : options) {
    flags.insert(flags.end(), option.flags.begin(), option.flags.end());
  }
  return flags;
}

bool contains(const std::vector<std::string>& all, const std::string& one) {
  return std::ranges::find(all, one) != all.end();
}

// File names may contain line breaks; a message is always one line.
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

[[noreturn]] void refuse(const std::string& problem) {
  throw Error(problem).kind(ErrorKind::usage);
}

// The value of --config, or an empty text; the flags that are given are added to `given`.
std::string config_file(const std::vector<std::string>& arguments, std::set<std::string>& given) {
  std::string file;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string flag = flag_of(arguments[i]);
    if (!flag.empty()) given.insert(flag);
    if (flag != "--config") continue;
    const bool joined = arguments[i].size() > flag.size();
    file = joined ? arguments[i].substr(flag.size() + 1)
                  : (i + 1 < arguments.size() ? arguments[i + 1] : "");
  }
  return file;
}

std::vector<TomlItem> items_of(const std::string& file) {
  std::ifstream in(file);
  if (!in) refuse("--config " + file + ": cannot be read");
  return read_toml(in);
}

// The name of the option that `flag` stands for.
const OptionInfo* option_of(const std::vector<OptionInfo>& options, const std::string& flag) {
  auto found = std::ranges::find_if(
      options, [&](const OptionInfo& option) { return contains(option.flags, flag); });
  return found == options.end() ? nullptr : &*found;
}

}  // namespace

CommandLine::CommandLine(std::string name, const std::string& about, const std::string& examples)
    : name_(std::move(name)), parser_(name_, about, examples) {}

Options CommandLine::subcommand(const std::string& name, const std::string& about,
                                const std::string& examples) {
  return parser_.add_subcommand(name, about, examples);
}

// Appends the options of the configuration file as flags, unless the command line has them.
std::vector<std::string> CommandLine::with_config(std::vector<std::string> arguments) const {
  std::set<std::string> given;
  const std::string file = config_file(arguments, given);
  if (file.empty()) return arguments;
  const std::vector<TomlItem> items = items_of(file);
  const std::vector<std::string> commands = parser_.subcommands();
  auto found = std::ranges::find_if(
      arguments, [&](const std::string& argument) { return contains(commands, argument); });
  const std::string command = found == arguments.end() ? "" : *found;
  const std::vector<OptionInfo> known =
      (command.empty() ? parser_.options() : parser_.subcommand(command)).list();
  for (const TomlItem& item : items) {
    if (!item.section.empty() && item.section != command) continue;
    std::string flag = "--" + item.name;
    std::ranges::replace(flag, '_', '-');
    const OptionInfo* option = option_of(known, flag);
    if (option == nullptr) {
      const std::string other = nearest_name(flag, flags_of(known));
      refuse("--config " + file + ": there is no option '" + item.name + "'" +
             did_you_mean(other.empty() ? "" : other.substr(2), "'"));
    }
    if (given.contains(flag)) continue;
    if (option->is_flag) {
      arguments.push_back(flag + "=" + (item.values.empty() ? "true" : item.values[0]));
    } else {
      arguments.push_back(flag);
      arguments.insert(arguments.end(), item.values.begin(), item.values.end());
    }
  }
  return arguments;
}

// One line that says what is wrong and, where it can be guessed, what was meant.
int CommandLine::explain(const OptionParser::Result& result,
                         const std::vector<std::string>& arguments) const {
  const std::string command = parser_.chosen();
  std::string message = result.message;
  if (result.outcome == OptionParser::Outcome::unknown_argument) {
    const Options options = command.empty() ? parser_.options() : parser_.subcommand(command);
    const std::vector<std::string> known = flags_of(options.list());
    for (const std::string& argument : arguments) {
      const std::string flag = flag_of(argument);
      if (flag.empty() || contains(known, flag)) continue;
      message = "there is no flag " + flag + did_you_mean(nearest_name(flag, known));
      break;
    }
  } else if (result.outcome == OptionParser::Outcome::missing && command.empty()) {
    const std::vector<std::string> commands = parser_.subcommands();
    auto word = std::ranges::find_if(
        arguments, [](const std::string& argument) { return !argument.starts_with("-"); });
    if (word != arguments.end() && !commands.empty()) {
      message =
          "there is no command '" + *word + "'" + did_you_mean(nearest_name(*word, commands), "'");
    }
  }
  const std::string help = name_ + (command.empty() ? "" : " " + command) + " --help";
  std::fprintf(stderr, "%s: %s (see: %s)\n", name_.c_str(), in_one_line(message).c_str(),
               help.c_str());
  return 2;
}

int CommandLine::run(int argc, char** argv, const std::function<int()>& body) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  try {
    arguments = with_config(std::move(arguments));
    const OptionParser::Result result = parser_.parse(arguments);
    if (result.outcome == OptionParser::Outcome::printed) return 0;
    if (result.outcome != OptionParser::Outcome::parsed) return explain(result, arguments);
    return body();
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

std::vector<std::pair<std::string, std::string>> CommandLine::settings(const Options& options) {
  std::vector<std::pair<std::string, std::string>> all;
  for (const OptionInfo& option : options.list()) {
    if (option.name.empty()) continue;
    std::string value;
    for (const std::string& part : option.values) value += (value.empty() ? "" : " ") + part;
    all.emplace_back(option.name, option.values.empty() ? option.default_text : value);
  }
  return all;
}

std::string CommandLine::toml(const Options& options, const std::set<std::string>& except) {
  return write_toml(options.list(), except);
}

}  // namespace millrace
