// Measures the time from a folder of many files to the first batch, and the memory of the file
// list. Prints one JSON line.
#include "tools/bench/bench_measure.h"
#include "tools/cli/command_line.h"

#include <millrace/datasets/folders/image_folder.h>
#include <millrace/decoders/image/image_write.h>

namespace {

using namespace millrace;
namespace fs = std::filesystem;

// Creates tiny pictures, spread over subfolders.
void make_files(const fs::path& root, std::int64_t count, std::int64_t per_folder) {
  Array pixel = Array::empty(DType::uint8, {1, 1, 3});
  for (std::uint8_t& value : pixel.as<std::uint8_t>()) value = 128;
  std::vector<std::byte> png;
  if (Status status = encode_png(pixel, {}, png); !status.ok()) throw status.error();
  fs::path folder;
  for (std::int64_t i = 0; i < count; ++i) {
    if (i % per_folder == 0) {
      folder = root / ("part" + std::to_string(1'000'000 + i / per_folder));
      fs::create_directories(folder);
    }
    std::ofstream(folder / ("picture" + std::to_string(10'000'000 + i) + ".png"), std::ios::binary)
        .write(reinterpret_cast<const char*>(png.data()), static_cast<std::streamsize>(png.size()));
  }
}

void run(const fs::path& folder, const FileListOptions& files) {
  const double before_mb = peak_rss_mb();
  const auto start = std::chrono::steady_clock::now();
  auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  ImageFolder images(folder, {.size = 8, .files = files});
  const double listed = seconds();
  const double list_mb = peak_rss_mb();
  Loader loader(images, {.batch_size = 32, .shuffle = true});
  if (!loader.next()) throw Error("there is no batch");
  const double first_batch = seconds();
  const auto count = static_cast<double>(images.size());
  nlohmann::json line{
      {"files", images.size()},
      {"folders", images.files().folders()},
      {"from_index", images.files().from_index()},
      {"list_s", listed},
      {"first_batch_s", first_batch},
      {"bytes_per_file", static_cast<double>(images.files().memory_bytes()) / count},
      {"peak_bytes_per_file", (list_mb - before_mb) * 1e6 / count},
      {"peak_rss_mb", peak_rss_mb()}};
  std::cout << line.dump() << "\n";
}

}  // namespace

int main(int argc, char** argv) {
  CommandLine line(
      "bench_listing",
      "Measures how long it takes to list a folder of pictures and load a first batch.",
      "\nExamples:\n  bench_listing many --make 1000000     # makes the files first\n"
      "  bench_listing many --index never      # reads the folders\n"
      "  bench_listing many                    # from the index, if there is one\n");
  fs::path folder;
  std::int64_t make = 0, per_folder = 1000;
  std::string index = "automatic";
  FileListOptions files;
  const Options options = line.options();
  options.add("folder", folder, "folder with the pictures to list").required();
  options.add("--make", make, "number of pictures to create in the folder, without a measurement")
      .default_text("");
  options.add("--per-folder", per_folder, "number of pictures per subfolder with --make");
  options.add("--index", index, "use of the folder's index: automatic, always or never")
      .one_of({"automatic", "always", "never"});
  options.add("--index-path", files.index_path, "path of the index; default: in the folder");
  options.flag("--check-files", files.check_files, "compare size and time of every file");
  return line.run(argc, argv, [&] {
    files.index = index == "never"    ? FileListOptions::Index::never
                  : index == "always" ? FileListOptions::Index::always
                                      : FileListOptions::Index::automatic;
    if (make > 0) {
      make_files(folder, make, per_folder);
    } else {
      run(folder, files);
    }
    return 0;
  });
}
