// Sounds with their texts out of any data set that has both as fields, e.g. an Arrow file: found by
// name and type, cut to windows of one length, with the tokens of the texts.
//
//   AudioTextPairs pairs(ArrowDataset("songs.arrow"), {.samples = 160'000,
//                        .window = AudioWindow::random, .captions = {.tokenizer =
//                        byte_tokenizer()}});
//
// A sound is the field "audio", "wavs" or "wav", float32 with one axis (with `spectrograms` two); a
// text is "caption", "raw_texts" or "text"; without one, "tokens" or "texts" int64 with one axis
// are its tokens. What is missing, ambiguous or of another type is one error, before anything runs.
#pragma once

#include <millrace/datasets/folders/audio_folder.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace millrace {

struct AudioTextOptions {
  bool spectrograms = false;     // instead of sounds, whole
  int times = 1;                 // which of their two axes is time
  std::int64_t samples = 0;      // of a window, filled up with silence; 0: as long as each is
  std::int64_t min_samples = 1;  // or times: what has fewer is an error of its sample
  AudioWindow window = AudioWindow::first;
  CaptionOptions captions{};  // with a tokenizer, unless the data set has tokens
};

// Fields: audio float32; tokens int64 [-1]; caption text, empty where there are only tokens.
class AudioTextPairs : public Dataset {
 public:
  // Throws an Error of kind usage that names the field.
  AudioTextPairs(AnyDataset dataset, AudioTextOptions options);

  std::int64_t size() const override { return mapped_->size(); }
  const Schema& schema() const override { return mapped_->schema(); }
  Status load(std::int64_t index, const LoadContext& context, Sample& sample) const override {
    return mapped_->load(index, context, sample);
  }
  std::string describe(std::int64_t index) const override { return mapped_->describe(index); }
  std::vector<LeftOut> left_out() const override { return mapped_->left_out(); }

 private:
  std::shared_ptr<const Dataset> mapped_;
};

}  // namespace millrace
