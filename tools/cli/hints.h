// "Did you mean ...?": finds the known name that a mistyped one is closest to.
//
//   nearest_name("--sise", {"--size", "--seed"})      // "--size"
#pragma once

#include <string>
#include <vector>

namespace millrace {

// The name with the smallest edit distance to `word`; empty if all differ by 3 letters or more.
std::string nearest_name(const std::string& word, const std::vector<std::string>& names);

// "; did you mean --size?", or an empty text. `quote` is put around the name.
std::string did_you_mean(const std::string& name, const std::string& quote = "");

}  // namespace millrace
