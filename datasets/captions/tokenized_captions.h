// Adds token ids to a data set that has texts, so that a cache or a memmap can be used for training
// like a folder of files with captions.
//
//   TokenizedCaptions pairs(ArrowDataset("tokens.arrow"), {.tokenizer = byte_tokenizer()});
#pragma once

#include <millrace/datasets/arrow/arrow_dataset.h>
#include <millrace/datasets/captions/caption_options.h>
#include <millrace/pipeline/data/adapter.h>

#include <string>
#include <vector>

namespace millrace {

// Fields: "caption" (text), with a tokenizer "tokens" (int64), and the other fields of the data set
// unchanged. The data set's own "tokens" and the text field itself are dropped.
class TokenizedCaptions : public Adapter {
 public:
  // `text` names the text field of the data set. Throws an Error of kind usage if there is none.
  TokenizedCaptions(AnyDataset dataset, CaptionOptions captions,
                    const std::string& text = "caption");

  const Schema& schema() const override { return schema_; }
  Status load(std::int64_t index, const LoadContext& context, Sample& sample) const override;

 private:
  CaptionOptions captions_;
  std::string text_;
  std::vector<std::string> kept_;  // fields that are copied unchanged
  Schema schema_;
};

}  // namespace millrace
