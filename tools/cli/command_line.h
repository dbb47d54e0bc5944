// How every program of the house is called: options are declared once and are flags and keys of a
// TOML file alike; results go to stdout, messages to stderr; it ends with 0, 1 (it failed), 2 (it
// was called wrongly) or 128 + n (signal n).
//
//   int main(int argc, char** argv) {
//     CommandLine line("train_vqgan", "Trains ...", examples);
//     line.app().add_option("--steps", steps, "how long to train")->capture_default_str();
//     return line.run(argc, argv, [&] { return train(); });
//   }
//
// `--config run.toml` is there without being declared. A key is a flag without its dashes, in the
// top part or in a [subcommand] part; what stands on the command line wins.
#pragma once

#include <charconv>
#include <functional>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include <CLI/CLI.hpp>

namespace millrace {

class CommandLine {
 public:
  CommandLine(std::string name, const std::string& about, const std::string& examples);

  CLI::App& app() { return app_; }
  const std::string& name() const { return name_; }
  CLI::App& subcommand(const std::string& name, const std::string& about,
                       const std::string& examples);

  // Parses, runs `body`, and turns whatever is thrown into one line and an exit code.
  int run(int argc, char** argv, const std::function<int()>& body);

  // All that was given or is by default, e.g. {"size", "256"}: what a log or a cache records.
  static std::vector<std::pair<std::string, std::string>> settings(const CLI::App& app);
  // The same as a file for --config, with what each key means. Without the keys in `except`, which
  // say how a program is called rather than what it does.
  static std::string toml(const CLI::App& app, const std::set<std::string>& except = {});

 private:
  std::vector<std::string> with_config(std::vector<std::string> arguments) const;
  int explain(const CLI::ParseError& error, const std::vector<std::string>& arguments);

  std::string name_;
  CLI::App app_;
};

// A value as a flag takes it, so that it reads back to the bit.
inline std::string flag_text(const std::string& value) {
  return value;
}
inline std::string flag_text(bool value) {
  return value ? "true" : "false";
}
template <class T>
requires std::is_arithmetic_v<T> std::string flag_text(T value) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
}
template <class T>
std::string flag_text(const std::vector<T>& values) {
  std::string text;
  for (const T& value : values) text.append(text.empty() ? "" : ",").append(flag_text(value));
  return "[" + text + "]";
}

// An option whose default is shown, and written to a configuration.
template <class T>
CLI::Option* declare(CLI::App& app, const char* name, T& value, const char* text,
                     const char* group) {
  CLI::Option* option = app.add_option(name, value, text)->group(group);
  if constexpr (requires { flag_text(value); }) {
    return option->default_str(flag_text(value));
  } else {
    return option->capture_default_str();
  }
}

// The first SIGINT or SIGTERM is remembered, so that a program can end in order; the second ends it
// at once. Until watch() is called signals do what they always do.
class Signals {
 public:
  static void watch();
  // The signal that came, or 0.
  static int received();
};

}  // namespace millrace
