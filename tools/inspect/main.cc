// inspect: what is in a cache, a media file or a folder of media.
#include "tools/cli/command_line.h"
#include "tools/inspect/cache_view.h"
#include "tools/inspect/doctor.h"

#include <millrace/pipeline/base/error.h>

#include <fmt/format.h>

namespace {

using namespace millrace;

constexpr const char* examples = R"(
Examples:
  inspect photos.npy                        # schema, counts, statistics, sources
  inspect photos.npy --verify               # read every byte, compare with the checksums
  inspect clips.arrow --row 17              # one row
  inspect clips.arrow --sheet clips.png     # a contact sheet: one clip a line
  inspect clip.mp4                          # a media file: what its headers say
  inspect --doctor media/                   # a folder: sizes, lengths, pairs, odd and broken
                                            # files, duplicates, what each trainer would do
  inspect --doctor media/ --json | jq .kinds
)";

}  // namespace

int main(int argc, char** argv) {
  CommandLine line("inspect", "Tells what is in a cache, a media file or a folder of media.",
                   examples);
  std::string path, doctor;
  ViewOptions options;
  int jobs = 0;
  bool all = false;
  CLI::App& app = line.app();
  app.add_option("path", path, "a cache (.npy, .arrow, .bin, .raw) or a media file");
  app.add_flag("--verify", options.verify, "read everything and compare with the checksums");
  app.add_option("--row", options.row, "show this row")->check(CLI::NonNegativeNumber);
  app.add_option("--sheet", options.sheet, "write a contact sheet")->type_name("PNG");
  app.add_option("--samples", options.samples, "how many samples the sheet shows")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--frames", options.frames, "how many frames of each clip it shows")
      ->check(CLI::Range(1, 32))
      ->capture_default_str();
  app.add_option("--doctor", doctor, "examine a folder of media, headers only")
      ->type_name("FOLDER");
  app.add_flag("--all", all, "list every odd file, not the first few");
  app.add_option("--jobs", jobs, "threads; 0: one per core")->check(CLI::Range(0, 1024));
  app.add_flag("--json", options.json, "print the result as one JSON object");
  return line.run(argc, argv, [&] {
    if (path.empty() == doctor.empty()) {
      throw Error("give either a file, or a folder with --doctor (see: inspect --help)")
          .kind(ErrorKind::usage);
    }
    if (!doctor.empty()) {
      DoctorReport report = examine(doctor, jobs);
      fmt::print("{}", options.json ? to_json(report) + "\n" : to_text(report, all ? SIZE_MAX : 5));
      return 0;
    }
    if (std::filesystem::is_directory(path)) {
      throw Error("is a folder; examine it with: inspect --doctor " + path)
          .at(path)
          .kind(ErrorKind::usage);
    }
    if (!std::filesystem::exists(path)) {
      throw Error("there is no such file").at(path).kind(ErrorKind::usage);
    }
    return is_cache(path) ? view_cache(path, options) : view_media(path, options);
  });
}
