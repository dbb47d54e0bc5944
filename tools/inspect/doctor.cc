#include "tools/inspect/doctor.h"

#include <millrace/datasets/listing/file_list.h>
#include <millrace/datasets/listing/mapped_file.h>
#include <millrace/datasets/listing/printable.h>
#include <millrace/pipeline/base/log.h>
#include <millrace/pipeline/loader/loader.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>
#include <xxhash.h>

namespace millrace {

namespace {

std::string shown(const std::string& path) {
  return printable(std::string_view(path));
}

// The properties of a file as a sample of numbers and two texts, so that a loader reads them in
// parallel.
class Headers : public Dataset {
 public:
  explicit Headers(FileList files) : files_(std::move(files)) {}

  std::int64_t size() const override { return files_.size(); }
  const Schema& schema() const override { return schema_; }
  Status load(std::int64_t index, const LoadContext&, Sample& sample) const override {
    MediaFacts f;
    if (Status status = probe_media(files_.path(index), f); !status.ok()) return status;
    auto numbers = sample.out("numbers").as<double>();
    const double values[] = {static_cast<double>(f.width),
                             static_cast<double>(f.height),
                             static_cast<double>(f.channels),
                             static_cast<double>(f.frames),
                             f.seconds,
                             f.frames_per_second,
                             static_cast<double>(f.sample_rate_hz),
                             static_cast<double>(f.faces)};
    std::ranges::copy(values, numbers.begin());
    sample.set_text("format", f.format);
    sample.set_text("oddity", f.oddity);
    return {};
  }
  std::string describe(std::int64_t index) const override { return shown(files_.relative(index)); }

 private:
  FileList files_;
  Schema schema_{{.name = "numbers", .dtype = DType::float64, .shape = {8}},
                 text_field("format"),
                 text_field("oddity")};
};

void count(KindReport& kind, std::span<const double> n, std::string_view format) {
  ++kind.formats[std::string(format)];
  if (n[0] > 0) kind.width.add(n[0]);
  if (n[1] > 0) kind.height.add(n[1]);
  if (n[2] > 0) ++kind.channels[std::llround(n[2])];
  if (n[3] > 0) kind.frames.add(n[3]);
  if (n[4] > 0) kind.seconds.add(n[4]);
  if (n[5] > 0) kind.frames_per_second.add(n[5]);
  if (n[6] > 0) ++kind.sample_rates_hz[std::llround(n[6])];
  if (n[7] > 0) kind.faces.add(n[7]);
}

void scan(const FileList& files, int jobs, DoctorReport& report) {
  LoaderOptions options{.batch_size = std::min<std::int64_t>(files.size(), 64),
                        .pool = std::make_shared<Pool>(jobs),
                        .errors = {.drop = true, .max_fraction = 1}};
  Loader loader(Headers(files), options);
  while (auto batch = loader.next()) {
    Array numbers = (*batch)["numbers"];
    for (std::int64_t row = 0; row < batch->size(); ++row) {
      auto i = static_cast<std::size_t>(row);
      std::int64_t index = batch->indices()[i];
      KindReport& kind = report.kinds[kind_of(files.name(index))];
      count(kind, numbers.row(row).as<const double>(), batch->texts("format")[i]);
      std::string_view oddity = batch->texts("oddity")[i];
      if (!oddity.empty()) {
        report.odd.push_back({shown(files.relative(index)), std::string(oddity)});
      }
    }
    for (const BadSample& bad : batch->dropped()) {
      report.broken.push_back({shown(files.relative(bad.index)), bad.reason});
    }
  }
}

// Only files of equal size can be duplicates; these are compared by a hash of their content.
void find_duplicates(const FileList& files, DoctorReport& report) {
  std::map<std::int64_t, std::vector<std::int64_t>> by_size;
  for (std::int64_t i = 0; i < files.size(); ++i) {
    if (files.bytes(i) > 0) by_size[files.bytes(i)].push_back(i);
  }
  for (const auto& [bytes, indices] : by_size) {
    if (indices.size() < 2) continue;
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::vector<std::string>> by_hash;
    for (std::int64_t index : indices) {
      try {
        MappedFile file(files.path(index), Access::sequential);
        XXH128_hash_t hash = XXH3_128bits(file.bytes().data(), file.size());
        by_hash[{hash.high64, hash.low64}].push_back(shown(files.relative(index)));
      } catch (const Error&) {  // unreadable: reported as broken already
      }
    }
    for (auto& [hash, paths] : by_hash) {
      if (paths.size() > 1) report.duplicates.push_back(std::move(paths));
    }
  }
  std::ranges::sort(report.duplicates);
}

void find_pairs(const FileList& files, DoctorReport& report) {
  std::set<std::string> texts, used;
  auto stem = [&](std::int64_t i) {
    std::string path = files.relative(i);
    return path.substr(0, path.rfind('.'));
  };
  for (std::int64_t i = 0; i < files.size(); ++i) {
    if (kind_of(files.name(i)) == MediaKind::text) texts.insert(stem(i));
  }
  for (std::int64_t i = 0; i < files.size(); ++i) {
    MediaKind kind = kind_of(files.name(i));
    if (kind == MediaKind::text || kind == MediaKind::other) continue;
    DoctorReport::Pairs& pairs = report.pairs[kind];
    if (texts.contains(stem(i))) {
      ++pairs.paired;
      used.insert(stem(i));
    } else {
      pairs.without_text.push_back(shown(files.relative(i)));
    }
  }
  for (const std::string& text : texts) {
    if (!used.contains(text)) report.texts_alone.push_back(shown(text + ".txt"));
  }
}

std::int64_t usable(const DoctorReport& report, MediaKind kind) {
  auto found = report.kinds.find(kind);
  if (found == report.kinds.end()) return 0;
  std::int64_t sum = 0;
  for (const auto& [format, files] : found->second.formats) sum += files;
  return sum;
}

std::int64_t below(const Spread& spread, double limit) {
  return std::ranges::count_if(spread.values, [&](double v) { return v < limit; });
}

// What each trainer would read from this folder with its default options.
void advise(DoctorReport& report) {
  auto say = [&](const char* trainer, const std::string& text) {
    report.trainers.push_back(fmt::format("{:<22} {}", trainer, text));
  };
  auto kind = [&](MediaKind which) {
    auto found = report.kinds.find(which);
    return found == report.kinds.end() ? KindReport{} : found->second;
  };
  std::int64_t images = usable(report, MediaKind::image), gifs = usable(report, MediaKind::gif);
  std::int64_t clips = usable(report, MediaKind::video) + gifs;
  std::int64_t meshes = usable(report, MediaKind::mesh), sounds = usable(report, MediaKind::audio);
  auto split = [](std::int64_t n) {
    auto train = static_cast<std::int64_t>(0.95 * static_cast<double>(n));
    return fmt::format("{} to train, {} to validate", train, n - train);
  };
  if (images + gifs == 0) {
    say("train_vqgan", "finds no pictures");
  } else {
    std::int64_t small = below(kind(MediaKind::image).width, 128);
    say("train_vqgan",
        fmt::format("{} pictures ({}); shorter side resized, middle cropped{}", images + gifs,
                    split(images + gifs),
                    small > 0 ? fmt::format("; {} are under 128 wide and enlarged", small) : ""));
  }
  if (clips == 0) {
    say("train_video_tokenizer", "finds no clips");
  } else {
    std::int64_t shorter =
        below(kind(MediaKind::video).frames, 17) + below(kind(MediaKind::gif).frames, 17);
    say("train_video_tokenizer",
        fmt::format("{} clips ({}), first 17 frames{}", clips, split(clips),
                    shorter > 0
                        ? fmt::format("; {} are shorter: the last frame is repeated", shorter)
                        : ""));
  }
  if (meshes == 0) {
    say("train_mesh_*", "find no meshes");
  } else {
    Spread faces = kind(MediaKind::mesh).faces;
    auto large = static_cast<std::int64_t>(faces.values.size()) - below(faces, 801);
    say("train_mesh_autoencoder",
        fmt::format(
            "{} meshes, padded to the most faces of a batch{}", meshes,
            large > 0 ? fmt::format("; {} have over 800 faces: see --max-faces", large) : ""));
    say("train_mesh_transformer", fmt::format("the same; {} have a text for conditioning",
                                              report.pairs[MediaKind::mesh].paired));
  }
  std::int64_t pairs = report.pairs[MediaKind::gif].paired;
  say("train_nuwa", pairs == 0 ? "finds no gif/txt pairs"
                               : fmt::format("{} gif/txt pairs ({})", pairs, split(pairs)));
  std::int64_t spoken = report.pairs[MediaKind::audio].paired;
  say("train_mulan", sounds == 0   ? "finds no sounds"
                     : spoken == 0 ? fmt::format("{} sounds, but none has a text beside it", sounds)
                                   : fmt::format("{} of {} sounds with a text ({})", spoken, sounds,
                                                 split(spoken)));
}

}  // namespace

double Spread::low() const {
  return values.empty() ? 0 : *std::ranges::min_element(values);
}
double Spread::high() const {
  return values.empty() ? 0 : *std::ranges::max_element(values);
}
double Spread::middle() const {
  if (values.empty()) return 0;
  std::vector<double> sorted = values;
  auto half = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::ranges::nth_element(sorted, half);
  return *half;
}

DoctorReport examine(const std::filesystem::path& folder, int jobs) {
  FileList files(folder, {.index = FileListOptions::Index::never});
  DoctorReport report{.folder = folder, .files = files.size()};
  if (files.size() == 0) {
    throw Error("the folder has no files").at(folder.string()).kind(ErrorKind::usage);
  }
  set_log_level(LogLevel::error);  // the report lists every bad file
  for (std::int64_t i = 0; i < files.size(); ++i) {
    KindReport& kind = report.kinds[kind_of(files.name(i))];
    ++kind.files;
    kind.bytes += std::max<std::int64_t>(files.bytes(i), 0);
  }
  for (const LeftOut& left : files.left_out()) {
    report.odd.push_back({left.source, left.reason});
  }
  scan(files, jobs, report);
  for (std::int64_t i = 0; i < files.size(); ++i) {
    if (kind_of(files.name(i)) == MediaKind::other) {
      report.odd.push_back({shown(files.relative(i)), "of no kind that is known"});
    }
  }
  find_duplicates(files, report);
  find_pairs(files, report);
  advise(report);
  return report;
}

}  // namespace millrace
