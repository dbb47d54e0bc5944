// The audio files of a folder, resampled to one rate, whole or cut to windows of one length.
// Captions come from a text file beside each (a.wav and a.txt) or from a table.
//
//   AudioFolder songs("songs", {.sample_rate_hz = 24'000, .samples = 240'000,
//                               .window = AudioWindow::random, .text = TextBeside::required});
//   AudioFolder listed("songs", {.sample_rate_hz = 24'000, .table = "songs/captions.csv"});
//
// A table is a CSV file with a header line, a file with one JSON object per line (.jsonl), or an
// Arrow file (.arrow) with two text columns. Its paths are relative to the folder. If several lines
// name the same file, each line is one sample.
#pragma once

#include <millrace/datasets/captions/caption_options.h>
#include <millrace/datasets/listing/file_list.h>
#include <millrace/decoders/limits.h>
#include <millrace/pipeline/data/dataset.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace millrace {

enum class AudioWindow {
  first,   // from the start
  random,  // at a random position, which depends on (seed, epoch, index)
};

struct AudioFolderOptions {
  int sample_rate_hz = 0;        // 0: each file's own
  int channels = 1;              // 1: mixed down to mono; 0: each file's own
  std::int64_t samples = 0;      // of a window; 0: the whole file, up to max_samples
  std::int64_t max_samples = 0;  // longer files are cut, if `samples` is 0; 0: no limit
  std::int64_t min_samples = 0;  // a shorter file is an error of its sample
  AudioWindow window = AudioWindow::first;
  TextBeside text = TextBeside::none;
  std::filesystem::path table{};  // captions of all files, instead of `text`
  std::string path_column = "path";
  std::string caption_column = "caption";
  CaptionOptions captions{};
  DecodeLimits limits{};
  FileListOptions files{};  // `extensions` replaces extensions() unless it is empty
};

// Fields: audio float32 [samples] for one channel, else [channels, samples], with -1 for whole
// files; valid_samples int64 [], after which a window is silent; with captions also caption (text),
// and with a tokenizer tokens (int64).
class AudioFolder : public Dataset {
 public:
  explicit AudioFolder(const std::filesystem::path& folder, AudioFolderOptions options = {});

  std::int64_t size() const override;
  const Schema& schema() const override { return schema_; }
  Status load(std::int64_t index, const LoadContext& context, Sample& sample) const override;
  std::string describe(std::int64_t index) const override;
  std::vector<LeftOut> left_out() const override;
  // The size of the file in bytes.
  std::int64_t cost(std::int64_t index, std::int64_t epoch = 0) const override;

  std::filesystem::path path(std::int64_t index) const;
  static const std::vector<std::string>& extensions();

 private:
  struct State;
  Status load_caption(std::int64_t index, Sample& sample) const;

  AudioFolderOptions options_;
  Schema schema_;
  std::shared_ptr<State> state_;
};

}  // namespace millrace
