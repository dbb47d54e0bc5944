// Configuration files: reads the subset of TOML that flags need, and writes options as TOML.
//
//   for (const TomlItem& item : read_toml(file)) use(item.name, item.values);
//   std::ofstream("config.toml") << write_toml(options.list());
#pragma once

#include "tools/cli/options.h"

#include <istream>
#include <set>
#include <string>
#include <vector>

namespace millrace {

// `size = 24` in the part [images] is {"images", "size", {"24"}}.
struct TomlItem {
  std::string section;  // empty: above all sections
  std::string name;
  std::vector<std::string> values;  // several if the value is a list
};

// Throws an Error that says what cannot be parsed. Items of nested sections are left out.
std::vector<TomlItem> read_toml(std::istream& in);

// Every option with its help text as a comment, under its group. Options without a value are
// commented out. `except`: names to leave out.
std::string write_toml(const std::vector<OptionInfo>& options,
                       const std::set<std::string>& except = {});

}  // namespace millrace
