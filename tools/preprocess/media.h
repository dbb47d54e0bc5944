// What the subcommands of preprocess have in common.
#pragma once

#include "tools/preprocess/job.h"

#include <millrace/datasets/folders/pixel_size.h>
#include <millrace/datasets/listing/file_list.h>
#include <millrace/decoders/video/clip.h>

#include <functional>
#include <map>
#include <string>

namespace millrace {

// "256" is a square, "480x640" height and width, "0" each as large as it is.
PixelSize parse_size(const std::string& text);
std::string to_string(const PixelSize& size);

// What --short takes.
const std::map<std::string, ShortClip>& short_clip_rules();

// --store and --check.
struct StoreOptions {
  std::string store = "decoded";
  std::string check = "decode";
  bool encoded() const { return store == "encoded"; }
};
void declare_store(const Options& options, StoreOptions& values);

// The files themselves, in the field `field`; `decoded` proves that they can be used, unless the
// check is of headers only. Its text fields are kept.
using PathOf = std::function<std::filesystem::path(std::int64_t index)>;
AnyDataset keep_encoded(AnyDataset decoded, PathOf path, const std::string& field,
                        const StoreOptions& options);

PathOf path_of(const FileList& files);
std::function<CacheSource(std::int64_t)> sources_of(const FileList& files);
// A medium and a text are one source: the name of the first, the bytes of both, the later time.
std::function<CacheSource(std::int64_t)> paired_sources(const std::filesystem::path& folder,
                                                        PathOf medium, PathOf text);

// The texts of a folder, or of the lines of one file: the field "text".
Job texts_job(const std::string& input, const std::shared_ptr<Pool>& pool);

// The listing as every medium does it: on the run's own threads.
FileListOptions listing(const std::shared_ptr<Pool>& pool);

// About 8 MB of files a shard where the rows vary, so that a crash costs seconds and not minutes.
std::int64_t shard_rows_for(const FileList& files);

}  // namespace millrace
