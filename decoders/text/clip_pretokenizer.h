// Private: cleans a caption and splits it into words, as CLIP's tokenizer does.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace millrace::detail {

// Returns the text cleaned, lower-cased and with single spaces. `text` must be well-formed UTF-8.
std::u32string clean_caption(std::string_view text);

// The words as UTF-8: start and end tokens, contractions ('s 't 're 've 'm 'll 'd), runs of
// letters, single digits, and runs of other characters that are not spaces.
std::vector<std::string> split_caption(std::u32string_view text);

}  // namespace millrace::detail
