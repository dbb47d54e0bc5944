#include "tools/cli/options.h"

#include "tools/cli/flag_text.h"

#include <millrace/version.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>

#include <CLI/CLI.hpp>

namespace millrace {

namespace {

constexpr std::size_t help_column = 34;
constexpr const char* default_group = "Options";

void add_common(CLI::App& app, const std::string& footer) {
  app.footer(footer);
  app.get_formatter()->column_width(help_column);
  app.add_option("--config", "TOML file with options; its keys are the flags without dashes")
      ->type_name("FILE");
}

// CLI11 writes out every digit of the largest number where a range has no upper end.
std::string without_endless_range(const std::string& message) {
  constexpr std::string_view value = "Value ", range = " not in range ";
  const std::size_t from = message.find(value), to = message.find(range);
  if (from == std::string::npos || to == std::string::npos || message.size() - to < 300) {
    return message;
  }
  return message.substr(0, from) + message.substr(from + value.size(), to - from - value.size()) +
         " is too small";
}

bool is_number(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  return option.get_items_expected_max() == 0 || type.starts_with("INT") ||
         type.starts_with("UINT") || type.starts_with("FLOAT") || type.starts_with("BOOLEAN");
}

}  // namespace

Option Option::required(bool is_required) {
  option_->required(is_required);
  if (is_required) option_->default_str("");
  return *this;
}
Option Option::range(int min, int max) {
  option_->check(CLI::Range(min, max));
  return *this;
}
Option Option::range(double min, double max) {
  option_->check(CLI::Range(min, max));
  return *this;
}
Option Option::positive() {
  option_->check(CLI::PositiveNumber);
  return *this;
}
Option Option::non_negative() {
  option_->check(CLI::NonNegativeNumber);
  return *this;
}
Option Option::one_of(std::initializer_list<const char*> values) {
  return one_of_names({values.begin(), values.end()});
}
Option Option::one_of(std::initializer_list<int> values) {
  option_->check(CLI::IsMember(std::vector<int>(values)));
  return *this;
}
Option Option::one_of_names(std::vector<std::string> names) {
  option_->check(CLI::IsMember(std::move(names)));
  return *this;
}
Option Option::existing_file() {
  option_->check(CLI::ExistingFile);
  return *this;
}
Option Option::existing_path() {
  option_->check(CLI::ExistingPath);
  return *this;
}
Option Option::expected(int count) {
  option_->expected(count);
  return *this;
}
Option Option::expected(int min, int max) {
  option_->expected(min, max);
  return *this;
}
Option Option::separator(char character) {
  option_->delimiter(character);
  return *this;
}
Option Option::excludes(const Option& other) {
  option_->excludes(other.option_);
  return *this;
}
Option Option::type_name(const std::string& name) {
  option_->type_name(name);
  return *this;
}
Option Option::default_text(const std::string& text) {
  option_->default_str(text);
  return *this;
}
Option Option::help(const std::string& text) {
  option_->description(text);
  return *this;
}

template <class T>
Option Options::add(const std::string& names, T& value, const std::string& help) const {
  CLI::Option* option = app_->add_option(names, value, help)->group(group_);
  if constexpr (requires { flag_text(value); }) option->default_str(flag_text(value));
  return Option(option);
}

// One line for each type that a program declares: everything of CLI11's that is a template is
// compiled here.
#define MILLRACE_OPTION_TYPE(...) \
  template Option Options::add(const std::string&, __VA_ARGS__&, const std::string&) const;
MILLRACE_OPTION_TYPE(bool)
MILLRACE_OPTION_TYPE(int)
MILLRACE_OPTION_TYPE(std::int64_t)
MILLRACE_OPTION_TYPE(std::uint64_t)
MILLRACE_OPTION_TYPE(float)
MILLRACE_OPTION_TYPE(double)
MILLRACE_OPTION_TYPE(std::string)
MILLRACE_OPTION_TYPE(std::filesystem::path)
MILLRACE_OPTION_TYPE(std::optional<double>)
MILLRACE_OPTION_TYPE(std::vector<int>)
MILLRACE_OPTION_TYPE(std::vector<std::int64_t>)
MILLRACE_OPTION_TYPE(std::vector<double>)
MILLRACE_OPTION_TYPE(std::vector<std::string>)
#undef MILLRACE_OPTION_TYPE

Option Options::flag(const std::string& names, bool& value, const std::string& help) const {
  return Option(app_->add_flag(names, value, help)->group(group_));
}

Option Options::find(const std::string& flag) const {
  return Option(app_->get_option(flag));
}

std::vector<OptionInfo> Options::list() const {
  std::vector<OptionInfo> all;
  for (const CLI::Option* option : std::as_const(*app_).get_options()) {
    OptionInfo info{.group = option->get_group(),
                    .help = option->get_description(),
                    .is_flag = option->get_items_expected_max() == 0,
                    .is_list = option->get_items_expected_max() > 1,
                    .is_number = is_number(*option),
                    .values = option->count() > 0 ? option->results() : CLI::results_t{},
                    .default_text = option->get_default_str()};
    for (const std::string& name : option->get_lnames()) info.flags.push_back("--" + name);
    if (!info.flags.empty()) info.name = option->get_lnames()[0];
    if (info.name != "help" && info.name != "version") all.push_back(std::move(info));
  }
  return all;
}

OptionParser::OptionParser(const std::string& program, const std::string& about,
                           const std::string& footer)
    : app_(std::make_unique<CLI::App>(about, program)) {
  add_common(*app_, footer);
  app_->set_version_flag("--version", program + " (Millrace) " + version,
                         "print the version of the program and exit");
}

OptionParser::~OptionParser() = default;

Options OptionParser::options() const {
  return {app_.get(), default_group};
}

Options OptionParser::add_subcommand(const std::string& name, const std::string& about,
                                     const std::string& footer) {
  CLI::App* app = app_->add_subcommand(name, about);
  add_common(*app, footer);
  app_->require_subcommand(1);
  return {app, default_group};
}

std::vector<std::string> OptionParser::subcommands() const {
  std::vector<std::string> names;
  for (const CLI::App* app : app_->get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(app->get_name());
  }
  return names;
}

Options OptionParser::subcommand(const std::string& name) const {
  return {app_->get_subcommand(name), default_group};
}

std::string OptionParser::chosen() const {
  const std::vector<CLI::App*> given = app_->get_subcommands();
  return given.empty() ? "" : given.front()->get_name();
}

OptionParser::Result OptionParser::parse(const std::vector<std::string>& arguments) {
  try {
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());  // as CLI11 takes them
    app_->parse(std::move(reversed));
    return {};
  } catch (const CLI::ExtrasError& error) {
    return {Outcome::unknown_argument, error.what()};
  } catch (const CLI::RequiredError& error) {
    return {Outcome::missing, error.what()};
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) return {Outcome::wrong, without_endless_range(error.what())};
    app_->exit(error);  // prints help or version
    return {Outcome::printed};
  }
}

}  // namespace millrace
