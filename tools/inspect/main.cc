// inspect: shows the content of a cache, a media file or a folder of media.
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
  inspect clips.arrow --sheet clips.png     # a contact sheet: one clip per line
  inspect clip.mp4                          # a media file: its headers
  inspect --doctor media/                   # a folder: sizes, lengths, pairs, odd and broken
                                            # files, duplicates, what each trainer would do
  inspect --doctor media/ --json | jq .kinds
)";

}  // namespace

int main(int argc, char** argv) {
  CommandLine line("inspect", "Shows the content of a cache, a media file or a folder of media.",
                   examples);
  std::string path, doctor;
  ViewOptions options;
  int jobs = 0;
  bool all = false;
  const Options flags = line.options();
  flags.add("path", path, "cache (.npy, .arrow, .bin, .raw) or media file to inspect");
  flags.flag("--verify", options.verify, "read all data and compare it with the checksums");
  flags.add("--row", options.row, "number of the row to print, from 0")
      .non_negative()
      .default_text("");
  flags.add("--sheet", options.sheet, "PNG file to write a contact sheet of samples to")
      .type_name("PNG");
  flags.add("--samples", options.samples, "number of samples in the contact sheet").range(1, 1000);
  flags.add("--frames", options.frames, "number of frames per clip in the contact sheet")
      .range(1, 32);
  flags.add("--doctor", doctor, "folder of media to examine, from file headers only")
      .type_name("FOLDER");
  flags.flag("--all", all, "list every file with a problem, not the first few");
  flags.add("--jobs", jobs, "number of threads; 0: one per core").range(0, 1024).default_text("");
  flags.flag("--json", options.json, "print the result as one JSON object");
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
