// What the subcommands of preprocess share.
#pragma once

#include "tools/preprocess/job.h"

#include <millrace/datasets/folders/pixel_size.h>
#include <millrace/datasets/listing/file_list.h>
#include <millrace/decoders/video/clip.h>

#include <functional>
#include <map>
#include <string>

namespace millrace {

// Parses "256" (a square), "480x640" (height x width) or "0" (the size of each file).
PixelSize parse_size(const std::string& text);
std::string to_string(const PixelSize& size);

// The values of --short.
const std::map<std::string, ShortClip>& short_clip_rules();

// --store and --check.
struct StoreOptions {
  std::string store = "decoded";
  std::string check = "decode";
  bool encoded() const { return store == "encoded"; }
};
void declare_store(const Options& options, StoreOptions& values);

// A data set of the encoded files, in the field `field`. `decoded` is loaded to check that a file
// is usable, unless only headers are checked; its text fields are kept.
using PathOf = std::function<std::filesystem::path(std::int64_t index)>;
AnyDataset keep_encoded(AnyDataset decoded, PathOf path, const std::string& field,
                        const StoreOptions& options);

PathOf path_of(const FileList& files);
std::function<CacheSource(std::int64_t)> sources_of(const FileList& files);
// A media file and its text are one source: name of the first, bytes of both, later time.
std::function<CacheSource(std::int64_t)> paired_sources(const std::filesystem::path& folder,
                                                        PathOf medium, PathOf text);

// The texts of a folder or the lines of a file, as the field "text".
Job texts_job(const std::string& input, const std::shared_ptr<Pool>& pool);

// Options for listing files on the threads of the run.
FileListOptions listing(const std::shared_ptr<Pool>& pool);

// About 8 MB of files per shard for rows of varying size, so that a crash costs only seconds.
std::int64_t shard_rows_for(const FileList& files);

}  // namespace millrace
