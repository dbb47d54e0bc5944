// The description of a cache: its rows, the sources and options it was made from, the failures, and
// the checksums of its data. An Arrow file stores the description in its schema's metadata (key
// "millrace"). An array file x.npy or x.bin has it beside it in x.npy.json or x.bin.json, and the
// list of sources in x.npy.sources.jsonl.
//
//   CacheInfo info = read_cache_info("photos.npy");  // throws if the file is damaged
//   std::string summary =
//       std::to_string(info.rows) + " rows, " + std::to_string(info.failed) + " failed";
//   CacheCheck check = verify_cache("photos.npy");  // reads every byte
#pragma once

#include <millrace/pipeline/data/schema.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace millrace {

enum class CacheFormat {
  npy,    // one field of fixed shape; numpy.load(mmap_mode="r")
  raw,    // the same without a header; numpy.memmap with the shape given
  arrow,  // any fields; an Arrow IPC file
};
const char* name_of(CacheFormat format);
// By the extension: .npy, .arrow or .feather, .bin or .raw or .memmap. Throws for any other.
CacheFormat format_of(const std::filesystem::path& path);

// A file that was made into a row, or that failed.
struct CacheSource {
  std::string name;
  std::int64_t bytes = -1;   // -1: unknown
  std::int64_t time_ns = 0;  // last modification, since 1970
};

struct CacheFailure {
  std::int64_t index = 0;  // of the source, in source order
  CacheSource source;
  std::string reason;
};

struct CacheInfo {
  CacheFormat format = CacheFormat::npy;
  bool described = false;  // false: not written by Millrace; only schema and rows are known
  Schema schema;
  std::int64_t rows = 0;
  std::string compression = "none";  // or "zstd:3"
  std::string version;               // the Millrace version that wrote it
  std::int64_t sources = 0, failed = 0;
  std::int64_t shard_rows = 0;  // sources per shard while it was written
  // Every option that the content depends on, e.g. "transform", "tokenizer", "model", "weights".
  std::map<std::string, std::string> options;
  std::string fingerprint;                        // of the source list
  std::map<std::string, std::int64_t> reasons;    // number of failures by reason
  std::map<std::string, std::string> unreadable;  // columns that cannot be fields, with their types
  std::vector<CacheFailure> first_failures;       // at most 100; for_each_failure() has all
  struct Part {
    std::int64_t rows = 0;
    std::int64_t bytes = 0;
    std::string xxh3;
  };
  std::vector<Part> parts;          // consecutive pieces of the data, with checksums
  std::vector<std::string> binary;  // fields that hold encoded media
};

// Checks the headers, the footer and the description, and reads no row. Throws an Error that names
// the file and the problem.
CacheInfo read_cache_info(const std::filesystem::path& path);

// Calls `use` for every failed source, in source order. A cache without a list of sources has none.
void for_each_failure(const std::filesystem::path& path,
                      const std::function<void(const CacheFailure&)>& use);
// Calls `use` with the source of every row.
void for_each_source(const std::filesystem::path& path,
                     const std::function<void(std::int64_t row, const CacheSource&)>& use);

struct CacheCheck {
  std::int64_t rows = 0;
  std::int64_t bytes = 0;             // read and compared with checksums
  bool has_checksums = false;         // false: not written by Millrace; only the layout was checked
  std::vector<std::string> problems;  // one line each; empty: no damage
};
// Reads the whole file and compares it with its checksums. Damage is reported in `problems`, not
// thrown.
CacheCheck verify_cache(const std::filesystem::path& path);

}  // namespace millrace
