// How every program is called. Options are flags and keys of a TOML file (--config); results go to
// stdout, messages to stderr. The exit code is 0, 1 (it failed), 2 (wrong use) or 128 + n (ended by
// signal n).
//
//   int main(int argc, char** argv) {
//     CommandLine line("train_vqgan", "Trains ...", examples);
//     line.options().add("--steps", steps, "number of training steps").positive();
//     return line.run(argc, argv, [&] { return train(); });
//   }
//
// --help, --version and --config need no declaration. A key of the TOML file is a flag without its
// dashes, at the top of the file or in a [subcommand] section; the command line overrides it.
#pragma once

#include "tools/cli/options.h"

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace millrace {

class CommandLine {
 public:
  CommandLine(std::string name, const std::string& about, const std::string& examples);

  Options options() const { return parser_.options(); }
  Options subcommand(const std::string& name, const std::string& about,
                     const std::string& examples);
  const std::string& name() const { return name_; }
  // The subcommand that was given, e.g. "images"; known while `body` of run() is called.
  std::string command() const { return parser_.chosen(); }

  // Parses, runs `body`, and turns an exception into one line on stderr and an exit code.
  int run(int argc, char** argv, const std::function<int()>& body);

  // Every option with its value or default, e.g. {"size", "256"}: what a log or a cache records.
  static std::vector<std::pair<std::string, std::string>> settings(const Options& options);
  // The same as a file for --config, with help texts as comments. `except`: options to leave out,
  // such as --json, which say how a program is called rather than what it does.
  static std::string toml(const Options& options, const std::set<std::string>& except = {});

 private:
  std::vector<std::string> with_config(std::vector<std::string> arguments) const;
  int explain(const OptionParser::Result& result, const std::vector<std::string>& arguments) const;

  std::string name_;
  OptionParser parser_;
};

}  // namespace millrace
