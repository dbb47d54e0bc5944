// Writes clips of moving digits with captions: GIFs with text files, or arrays as in Moving MNIST.
#include "tools/cli/command_line.h"
#include "tools/samples/digits.h"

#include <millrace/datasets/caches/cache_writer.h>
#include <millrace/decoders/gif/gif_write.h>
#include <millrace/pipeline/base/durable_file.h>
#include <millrace/pipeline/base/error.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace millrace {
namespace {

constexpr const char* examples = R"(
Examples:
  sample_digits digits --count 2000                    # digits/00000.gif and 00000.txt, ...
  sample_digits moving.npy --count 10000 --digits 2    # uint8 [clips, frames, 1, size, size]
Beside moving.npy lie moving.txt, one text a line, and moving.digits.npy, uint8 [clips, digits].
)";

struct DigitOptions {
  std::string out;
  std::int64_t count = 1000;
  DigitClipOptions clip{};
};

// Writes many small files durably with one sync for all: each is written under a temporary name and
// renamed after the sync.
class SmallFiles {
 public:
  explicit SmallFiles(std::filesystem::path folder) : folder_(std::move(folder)) {
    std::filesystem::create_directories(folder_);
  }
  void add(const std::string& name, std::span<const char> content) {
    const std::filesystem::path path = unfinished(name);
    std::ofstream file(path, std::ios::binary);
    file.write(content.data(), static_cast<std::streamsize>(content.size()));
    file.close();
    if (!file) throw Error("cannot write it").at(path.string()).stage("sample_digits");
    names_.push_back(name);
  }
  void finish() {
    const int folder = ::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool written = folder >= 0 && ::syncfs(folder) == 0;
    if (folder >= 0) ::close(folder);
    if (!written) throw Error("cannot bring the files to the disk").at(folder_.string());
    for (const std::string& name : names_) {
      std::filesystem::rename(unfinished(name), folder_ / name);
    }
    sync_folder(folder_);
  }

 private:
  std::filesystem::path unfinished(const std::string& name) const {
    return folder_ / (name + ".part");
  }

  std::filesystem::path folder_;
  std::vector<std::string> names_;
};

void write_gifs(const DigitOptions& o) {
  SmallFiles files(o.out);
  const int side = static_cast<int>(o.clip.size);
  const GifFrames shape{.frames = o.clip.frames, .height = side, .width = side, .channels = 1};
  std::vector<std::uint8_t> gif;
  for (std::int64_t i = 0; i < o.count; ++i) {
    char name[32];
    std::snprintf(name, sizeof name, "%05lld", static_cast<long long>(i));
    const DigitClip clip = draw_digit_clip(i, o.clip);
    const Status status =
        encode_gif(clip.pixels, shape, {.frames_per_second = 12.5, .dither = false}, gif);
    if (!status.ok()) throw status.error();
    files.add(std::string(name) + ".gif", {reinterpret_cast<const char*>(gif.data()), gif.size()});
    files.add(std::string(name) + ".txt", clip.caption + "\n");
  }
  files.finish();
}

template <class Row>
void write_array(const std::filesystem::path& path, const DigitOptions& o, const Shape& shape,
                 const Row& row) {
  const Schema schema{{.name = "video", .dtype = DType::uint8, .shape = shape}};
  CacheWriter writer(path, {.schema = schema,
                            .sources = o.count,
                            .options = {{"seed", std::to_string(o.clip.seed)},
                                        {"spread", std::to_string(o.clip.spread)}}});
  for (std::int64_t shard : writer.missing()) {
    ShardWriter rows = writer.begin(shard);
    Sample sample(schema);
    for (std::int64_t i : writer.range(shard)) {
      const std::vector<std::uint8_t> values = row(draw_digit_clip(i, o.clip));
      std::ranges::copy(values, sample.out("video").as<std::uint8_t>().begin());
      rows.append(i, {.name = std::to_string(i)}, sample);
    }
    rows.finish();
  }
  if (!writer.complete()) writer.join();
}

void write_arrays(const DigitOptions& o) {
  const std::filesystem::path path = o.out;
  std::filesystem::path digits = path, texts = path;
  digits.replace_extension(".digits.npy");
  texts.replace_extension(".txt");
  write_array(path, o, {o.clip.frames, 1, o.clip.size, o.clip.size},
              [](const DigitClip& clip) { return clip.pixels; });
  write_array(digits, o, {o.clip.digits}, [](const DigitClip& clip) { return clip.digits; });
  std::string lines;
  for (std::int64_t i = 0; i < o.count; ++i) {
    lines.append(draw_digit_clip(i, o.clip).caption).append("\n");
  }
  write_durably(texts, lines);
}

}  // namespace
}  // namespace millrace

int main(int argc, char** argv) {
  using namespace millrace;
  CommandLine line(
      "sample_digits",
      "Draws clips of digits that move and bounce, with a text for each: training data "
      "without a download.",
      examples);
  DigitOptions o;
  const Options options = line.options();
  options.add("out,--out", o.out, "folder for GIFs and texts, or an .npy file to write").required();
  Options clips = options.group("Clips");
  clips.add("--count", o.count, "number of clips to draw").positive();
  clips.add("--frames", o.clip.frames, "number of frames of a clip").positive();
  clips.add("--size", o.clip.size, "height and width of a frame, in pixels").range(16, 1024);
  clips.add("--digits", o.clip.digits, "number of digits in a clip: 1 or 2").range(1, 2);
  clips
      .add("--spread", o.clip.spread,
           "variation among clips of the same text in position, speed and handwriting, 0 to 1")
      .range(0.0, 1.0);
  clips.add("--seed", o.clip.seed, "random seed of all clips");
  return line.run(argc, argv, [&] {
    o.out.ends_with(".npy") ? write_arrays(o) : write_gifs(o);
    std::printf("%lld clips: %s\n", static_cast<long long>(o.count), o.out.c_str());
    return 0;
  });
}
