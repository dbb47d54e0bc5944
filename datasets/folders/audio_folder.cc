#include "media_files.h"

#include <millrace/datasets/captions/caption_reader.h>
#include <millrace/datasets/captions/caption_table.h>
#include <millrace/datasets/folders/audio_folder.h>
#include <millrace/datasets/listing/printable.h>
#include <millrace/decoders/audio/audio.h>

#include <algorithm>
#include <cstring>

namespace millrace {

using namespace detail;

namespace {

std::vector<std::string> wanted(const AudioFolderOptions& options) {
  return options.files.extensions.empty() ? AudioFolder::extensions() : options.files.extensions;
}

bool has_captions(const AudioFolderOptions& options) {
  return options.text != TextBeside::none || !options.table.empty();
}

Schema schema_of(const AudioFolderOptions& options) {
  auto refuse = [](const std::string& problem) {
    throw Error("AudioFolder: " + problem).kind(ErrorKind::usage);
  };
  if (options.sample_rate_hz < 0 || options.channels < 0 || options.samples < 0 ||
      options.max_samples < 0 || options.min_samples < 0) {
    refuse("sample_rate_hz, channels and numbers of samples must not be negative");
  }
  if (options.channels > options.limits.channels) {
    refuse("channels (" + std::to_string(options.channels) + ") is more than the limit of " +
           std::to_string(options.limits.channels));
  }
  if (options.samples > 0 && options.max_samples > 0) {
    refuse("a window (samples) and a whole file (max_samples) exclude each other");
  }
  if (options.samples == 0 && options.window == AudioWindow::random) {
    refuse("a random window needs its length in samples");
  }
  if (options.text != TextBeside::none && !options.table.empty()) {
    refuse("captions come from texts or from a table, not from both");
  }
  const std::int64_t length = options.samples > 0 ? options.samples : -1;
  Shape shape{length};
  if (options.channels != 1) shape = Shape{options.channels > 0 ? options.channels : -1, length};
  std::vector<Field> fields = {{.name = "audio", .dtype = DType::float32, .shape = shape},
                               {.name = "valid_samples", .dtype = DType::int64, .shape = {}}};
  if (has_captions(options)) add_caption_fields(fields, options.captions);
  return Schema(std::move(fields));
}

struct AudioScratch {
  AudioReader reader;
  std::vector<float> sound;
};

// [samples] for one channel, [channels, samples] for more.
Shape sound_shape(const AudioFolderOptions& options, const AudioInfo& info, std::int64_t samples) {
  if (options.channels == 1) return {samples};
  return {options.channels > 0 ? options.channels : info.channels, samples};
}

Status check_length(const AudioFolderOptions& options, std::int64_t samples) {
  if (samples >= options.min_samples) return {};
  return Error("the sound has " + std::to_string(samples) + " samples, fewer than " +
               std::to_string(options.min_samples))
      .stage("audio");
}

Status load_window(const AudioFolderOptions& options, AudioScratch& scratch,
                   const LoadContext& context, Sample& sample) {
  const AudioInfo& info = scratch.reader.info();
  AudioOptions decode{.samples = options.samples,
                      .sample_rate_hz = options.sample_rate_hz,
                      .channels = options.channels};
  if (options.window == AudioWindow::random) {
    const int rate = options.sample_rate_hz > 0 ? options.sample_rate_hz : info.sample_rate_hz;
    const double total =
        static_cast<double>(info.samples) * rate / std::max(info.sample_rate_hz, 1);
    const std::int64_t room = static_cast<std::int64_t>(total) - options.samples;
    if (room > 0) decode.start = context.random("window").below(room + 1);
  }
  const Array& to = sample.resize("audio", sound_shape(options, info, options.samples));
  AudioResult result;
  Status status = scratch.reader.decode(decode, to.as<float>(), result);
  sample.out("valid_samples").as<std::int64_t>()[0] = result.valid;
  if (!status.ok()) return status;
  return check_length(options, result.valid);
}

Status load_whole(const AudioFolderOptions& options, AudioScratch& scratch, Sample& sample) {
  AudioOptions decode{.sample_rate_hz = options.sample_rate_hz, .channels = options.channels};
  AudioResult result;
  Status status = scratch.reader.decode_all(decode, scratch.sound, result);
  if (!status.ok()) return status;
  if (status = check_length(options, result.valid); !status.ok()) return status;
  const std::int64_t kept =
      options.max_samples > 0 ? std::min(result.valid, options.max_samples) : result.valid;
  Shape shape = sound_shape(options, scratch.reader.info(), kept);
  float* to = sample.resize("audio", shape).as<float>().data();
  const std::int64_t channels = shape.rank() == 1 ? 1 : shape[0];
  for (std::int64_t c = 0; c < channels && kept > 0; ++c) {
    std::memcpy(to + c * kept, scratch.sound.data() + c * result.valid,
                static_cast<std::size_t>(kept) * sizeof(float));
  }
  sample.out("valid_samples").as<std::int64_t>()[0] = kept;
  return {};
}

// The file and caption of every line of a table.
struct TableRows {
  std::vector<std::int64_t> file_of;
  std::vector<std::string> captions;
};

TableRows match_table(const std::vector<CaptionRow>& rows, StemPairs& pairs) {
  const FileList& files = pairs.media;
  std::vector<bool> named(static_cast<std::size_t>(files.size()));
  TableRows result;
  for (const CaptionRow& row : rows) {
    const std::string path = std::filesystem::path(row.path).lexically_normal().native();
    std::int64_t low = 0, high = files.size();
    while (low < high) {
      const std::int64_t middle = (low + high) / 2;
      (files.relative(middle) < path ? low : high) =
          files.relative(middle) < path ? middle + 1 : middle;
    }
    if (low == files.size() || files.relative(low) != path) {
      pairs.left_out.push_back({printable(files.folder() / row.path),
                                "line " + std::to_string(row.line) +
                                    " of the table names it, but it is not in the folder"});
      continue;
    }
    named[static_cast<std::size_t>(low)] = true;
    result.file_of.push_back(low);
    result.captions.push_back(row.caption);
  }
  for (std::int64_t i = 0; i < files.size(); ++i) {
    if (!named[static_cast<std::size_t>(i)]) {
      pairs.left_out.push_back({printable(files.path(i)), "the table does not name it"});
    }
  }
  return result;
}

}  // namespace

struct AudioFolder::State {
  explicit State(StemPairs found) : pairs(std::move(found)) {}

  StemPairs pairs;
  TableRows table;
  bool from_table = false;

  // The position of a sample's file in pairs.media.
  std::int64_t file_of(std::int64_t index) const {
    return (from_table ? table.file_of : pairs.media_of)[static_cast<std::size_t>(index)];
  }

  ReaderPool<AudioScratch> readers;
};

const std::vector<std::string>& AudioFolder::extensions() {
  static const std::vector<std::string> known = {"wav", "flac", "mp3", "ogg", "opus", "m4a", "aac"};
  return known;
}

AudioFolder::AudioFolder(const std::filesystem::path& folder, AudioFolderOptions options)
    : options_(std::move(options)),
      schema_(schema_of(options_)),
      state_(std::make_shared<State>(
          pair_by_stem(folder, options_.files, wanted(options_), options_.text))) {
  refuse_empty(state_->pairs.media, "sounds", wanted(options_));
  if (options_.table.empty()) {
    refuse_no_pairs(state_->pairs, folder);
    return;
  }
  state_->from_table = true;
  const std::size_t before = state_->pairs.left_out.size();
  state_->table =
      match_table(read_caption_table(options_.table, options_.path_column, options_.caption_column),
                  state_->pairs);
  const std::vector<LeftOut>& all = state_->pairs.left_out;
  log_left_out(printable(folder), {all.begin() + static_cast<std::ptrdiff_t>(before), all.end()});
  if (state_->table.file_of.empty()) {
    throw Error("the table names no file of the folder")
        .at(printable(options_.table))
        .stage("list")
        .kind(ErrorKind::usage)
        .hint("Paths in it must be below " + printable(folder));
  }
}

std::int64_t AudioFolder::size() const {
  return state_->from_table ? static_cast<std::int64_t>(state_->table.file_of.size())
                            : state_->pairs.size();
}

std::filesystem::path AudioFolder::path(std::int64_t index) const {
  return state_->pairs.media.path(state_->file_of(index));
}

Status AudioFolder::load_caption(std::int64_t index, Sample& sample) const {
  if (!state_->from_table) {
    return detail::load_caption(state_->pairs, index, options_.captions, sample);
  }
  return at_file(set_caption(options_.captions,
                             state_->table.captions[static_cast<std::size_t>(index)], sample),
                 path(index));
}

Status AudioFolder::load(std::int64_t index, const LoadContext& context, Sample& sample) const {
  if (has_captions(options_)) {
    if (Status status = load_caption(index, sample); !status.ok()) return status;
  }
  const std::filesystem::path from = path(index);
  auto scratch = state_->readers.lend();
  Status status = scratch->reader.open(from, options_.limits);
  if (status.ok()) {
    status = options_.samples > 0 ? load_window(options_, *scratch, context, sample)
                                  : load_whole(options_, *scratch, sample);
  }
  return at_file(std::move(status), from);
}

std::string AudioFolder::describe(std::int64_t index) const {
  return printable(path(index));
}
std::int64_t AudioFolder::cost(std::int64_t index, std::int64_t /*epoch*/) const {
  return cost_of(state_->pairs.media, state_->file_of(index));
}
std::vector<LeftOut> AudioFolder::left_out() const {
  return state_->pairs.left_out;
}

}  // namespace millrace
