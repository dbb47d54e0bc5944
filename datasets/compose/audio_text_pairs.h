// Audio with captions from any data set that has both as fields, e.g. an Arrow file. The audio is
// cut to windows of one length, and the captions are tokenized.
//
//   AudioTextPairs pairs(ArrowDataset("songs.arrow"),
//                        {.samples = 160'000, .window = AudioWindow::random,
//                         .captions = {.tokenizer = byte_tokenizer()}});
//
// The fields are found by name and type. Audio is "audio", "wavs" or "wav", float32 with one axis
// (two for spectrograms). The caption is "caption", "raw_texts" or "text"; without one, "tokens" or
// "texts", int64 with one axis, hold token ids. The constructor throws if a field is missing,
// ambiguous or has another type.
#pragma once

#include <millrace/datasets/arrow/arrow_dataset.h>
#include <millrace/datasets/folders/audio_folder.h>
#include <millrace/pipeline/data/adapter.h>

#include <cstdint>

namespace millrace {

struct AudioTextOptions {
  bool spectrograms = false;     // the audio field holds spectrograms, which are not cut
  int times = 1;                 // the time axis of a spectrogram, 0 or 1
  std::int64_t samples = 0;      // of a window, padded with silence; 0: no cut
  std::int64_t min_samples = 1;  // shorter audio (or a spectrogram with fewer times) is an error
  AudioWindow window = AudioWindow::first;
  CaptionOptions captions{};  // needs a tokenizer, unless the data set has token ids
};

// Fields: audio float32; tokens int64 [-1]; caption text, empty if the data set has only token ids.
class AudioTextPairs : public Adapter {
 public:
  // Throws an Error of kind usage that names the field.
  AudioTextPairs(AnyDataset dataset, const AudioTextOptions& options);
};

}  // namespace millrace
