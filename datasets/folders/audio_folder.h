// The sounds of a folder, at one rate, whole or as windows of one length; with captions from a text
// beside each (a.wav and a.txt) or from a table.
//
//   AudioFolder songs("songs", {.sample_rate_hz = 24'000, .samples = 240'000,
//                               .window = AudioWindow::random, .text = TextBeside::required});
//   AudioFolder listed("songs", {.sample_rate_hz = 24'000, .table = "songs/captions.csv"});
//
// A table is CSV with a line of column names, one JSON object per line (.jsonl), or an Arrow file
// (.arrow) with two columns of texts. Paths in it are below the folder. A file may have several
// lines; its samples then differ in the caption.
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
  random,  // from anywhere it fits, by (seed, epoch, index)
};

struct AudioFolderOptions {
  int sample_rate_hz = 0;        // 0: each file's own
  int channels = 1;              // 1: mixed to one, as loud as before; 0: each file's own
  std::int64_t samples = 0;      // of a window; 0: the whole file, up to max_samples
  std::int64_t max_samples = 0;  // of a whole file: what is longer is cut; 0: not
  std::int64_t min_samples = 0;  // what has fewer is an error of its sample
  AudioWindow window = AudioWindow::first;
  TextBeside text = TextBeside::none;
  std::filesystem::path table{};  // instead of texts beside the files
  std::string path_column = "path";
  std::string caption_column = "caption";
  CaptionOptions captions{};
  DecodeLimits limits{};
  FileListOptions files{};  // `extensions`, if any, instead of ours
};

// Fields: audio float32 [samples] for one channel, else [channels, samples], -1 where whole;
// valid_samples int64 [], the rest of a window is silence; and where asked for caption text and
// tokens int64.
class AudioFolder : public Dataset {
 public:
  explicit AudioFolder(const std::filesystem::path& folder, AudioFolderOptions options = {});

  std::int64_t size() const override;
  const Schema& schema() const override { return schema_; }
  Status load(std::int64_t index, const LoadContext& context, Sample& sample) const override;
  std::string describe(std::int64_t index) const override;
  std::vector<LeftOut> left_out() const override;

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
