// The options of a program or of one of its subcommands: declared once, they are flags of the
// command line and keys of a TOML file. The library that parses them (CLI11) takes many seconds to
// compile, so only options.cc and toml.cc include it.
//
//   Options options = line.options();
//   Options data = options.group("Data");
//   data.add("folder,--folder", folder, "folder with the files to train on").required();
//   data.add("--workers", workers, "number of loading threads; 0: one per core").range(0, 1024);
//   options.flag("--json", json, "print the result as one JSON object");
#pragma once

#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace millrace {

// A handle of one declared option; every call returns the handle, so that calls can be chained.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  // A required option shows no default.
  Option required(bool is_required = true);
  Option range(int min, int max);
  Option range(double min, double max);
  Option positive();
  Option non_negative();
  Option one_of(std::initializer_list<const char*> values);
  Option one_of(std::initializer_list<int> values);
  template <class T>
  Option one_of(const std::map<std::string, T>& by_name) {
    std::vector<std::string> names;
    for (const auto& [name, value] : by_name) names.push_back(name);
    return one_of_names(std::move(names));
  }
  Option existing_file();
  Option existing_path();
  // The number of values that a list takes.
  Option expected(int count);
  Option expected(int min, int max);
  // Values of a list may also be separated by this character instead of by spaces.
  Option separator(char character);
  Option excludes(const Option& other);
  // What --help shows instead of TEXT, e.g. FILE.
  Option type_name(const std::string& name);
  // What --help and a written configuration show as the default; empty: nothing.
  Option default_text(const std::string& text);
  Option help(const std::string& text);

 private:
  Option one_of_names(std::vector<std::string> names);

  CLI::Option* option_;
};

// What is known of one option, after parsing: for configuration files, logs and hints.
struct OptionInfo {
  std::string name{};                // "weight-decay"; empty for an argument without a flag
  std::vector<std::string> flags{};  // "--weight-decay", "--wd"
  std::string group{}, help{};
  bool is_flag = false;               // takes no value
  bool is_list = false;               // takes several values
  bool is_number = false;             // numbers and booleans need no quotes in TOML
  std::vector<std::string> values{};  // as given on the command line
  std::string default_text{};
};

// A reference to the options of a program or subcommand. Copies refer to the same options.
class Options {
 public:
  Options(CLI::App* app, std::string group) : app_(app), group_(std::move(group)) {}

  // The same options; what is added to the result is listed under the heading `name` in --help.
  Options group(const std::string& name) const { return {app_, name}; }

  // `names`: flags separated by commas; one without dashes is a positional argument. `value` holds
  // the default, which --help shows. For bool, int, int64, uint64, float, double, string, path, and
  // vectors and optionals of these.
  template <class T>
  Option add(const std::string& names, T& value, const std::string& help) const;
  // An option that takes no value.
  Option flag(const std::string& names, bool& value, const std::string& help) const;
  // One that was added before; `flag` with its dashes.
  Option find(const std::string& flag) const;

  // All options in the order of declaration, --help and --version left out.
  std::vector<OptionInfo> list() const;

 private:
  CLI::App* app_;
  std::string group_;
};

// Parses a command line into the values that were declared. Owns all options.
class OptionParser {
 public:
  enum class Outcome { parsed, printed, unknown_argument, missing, wrong };
  struct Result {
    Outcome outcome = Outcome::parsed;
    std::string message{};  // what is wrong
  };

  OptionParser(const std::string& program, const std::string& about, const std::string& footer);
  ~OptionParser();
  OptionParser(const OptionParser&) = delete;
  OptionParser& operator=(const OptionParser&) = delete;

  Options options() const;
  // From the first call on, a subcommand is required.
  Options add_subcommand(const std::string& name, const std::string& about,
                         const std::string& footer);
  std::vector<std::string> subcommands() const;
  Options subcommand(const std::string& name) const;
  // The subcommand that was given, or an empty text.
  std::string chosen() const;

  // `arguments` without the program's name. --help and --version are printed to stdout.
  Result parse(const std::vector<std::string>& arguments);

 private:
  std::unique_ptr<CLI::App> app_;
};

}  // namespace millrace
