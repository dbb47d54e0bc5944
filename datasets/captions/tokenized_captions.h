// Any data set that has texts, with their tokens beside them: what a cache or a memmap needs to be
// trained on like a folder of files with captions.
//
//   Captioned pairs(ArrowDataset("tokens.arrow"), {.tokenizer = byte_tokenizer()}, "caption");
#pragma once

#include <millrace/datasets/captions/caption_options.h>
#include <millrace/pipeline/data/dataset.h>

#include <memory>
#include <string>
#include <vector>

namespace millrace {

// Fields: those of the data set, but for its `text` and any tokens; caption text, and with a
// tokenizer tokens int64.
class Captioned : public Dataset {
 public:
  // Throws an Error of kind usage if there is no text of that name.
  Captioned(AnyDataset dataset, CaptionOptions captions, const std::string& text = "caption");

  std::int64_t size() const override { return dataset_->size(); }
  const Schema& schema() const override { return schema_; }
  Status load(std::int64_t index, const LoadContext& context, Sample& sample) const override;
  std::string describe(std::int64_t index) const override { return dataset_->describe(index); }
  std::vector<LeftOut> left_out() const override { return dataset_->left_out(); }
  std::int64_t samples_per_task() const override { return dataset_->samples_per_task(); }

 private:
  AnyDataset dataset_;
  CaptionOptions captions_;
  std::string text_;
  std::vector<std::string> kept_;  // fields that stay as they are
  Schema schema_;
};

}  // namespace millrace
