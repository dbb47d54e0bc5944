// Private: how CLIP's tokenizer cleans a caption and cuts it into words.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace millrace::detail {

// Cleaned, lower-cased and with single spaces. `text` must be well-formed UTF-8.
std::u32string clean_caption(std::string_view text);

// The words as UTF-8: marks of start and end, contractions ('s 't 're 've 'm 'll 'd), runs of
// letters, single numbers, and runs of anything else but space.
std::vector<std::string> split_caption(std::u32string_view text);

}  // namespace millrace::detail
