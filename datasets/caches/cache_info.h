// What a cache says about itself: its rows, what it was made of and how, what failed, and the
// checksums that prove it. Arrow files carry this in their schema's metadata (key "millrace"); an
// array file x.npy or x.bin has it in x.npy.json or x.bin.json beside it, and the list of its
// sources in x.npy.sources.jsonl.
//
//   CacheInfo info = read_cache_info("photos.npy");       // throws if the file is damaged
//   std::cout << info.rows << " rows, " << info.failed << " failed\n";
//   CacheCheck check = verify_cache("photos.npy");        // reads every byte
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
// By the name's ending: .npy, .arrow or .feather, .bin or .raw or .memmap. Throws on any other.
CacheFormat format_of(const std::filesystem::path& path);

// A file that became a row, or failed to.
struct CacheSource {
  std::string name;
  std::int64_t bytes = -1;   // -1: unknown
  std::int64_t time_ns = 0;  // when it was last changed, since 1970
};

struct CacheFailure {
  std::int64_t index = 0;  // of the source, in the order of the run
  CacheSource source;
  std::string reason;
};

struct CacheInfo {
  CacheFormat format = CacheFormat::npy;
  bool described = false;  // false: by numpy, pyarrow or others; only schema and rows are known
  Schema schema;
  std::int64_t rows = 0;
  std::string compression = "none";  // or "zstd:3"
  std::string version;               // of Millrace
  std::int64_t sources = 0, failed = 0;
  std::int64_t shard_rows = 0;  // sources per shard, while it was made
  // All that decided the content, e.g. "transform", "tokenizer", "model", "weights".
  std::map<std::string, std::string> options;
  std::string fingerprint;                        // of the source list
  std::map<std::string, std::int64_t> reasons;    // how often a failure had this reason
  std::map<std::string, std::string> unreadable;  // columns of others that have no field: types
  std::vector<CacheFailure> first_failures;       // at most 100; for_each_failure() has all
  struct Part {
    std::int64_t rows = 0;
    std::int64_t bytes = 0;
    std::string xxh3;
  };
  std::vector<Part> parts;          // the data in pieces, one after the other
  std::vector<std::string> binary;  // fields kept as they were encoded
};

// Proves the headers, the footer and the side files, and reads no row. Throws an Error that says
// what is wrong with which file.
CacheInfo read_cache_info(const std::filesystem::path& path);

// In the order of the sources. Each may be called for any cache; one that has none calls nothing.
void for_each_failure(const std::filesystem::path& path,
                      const std::function<void(const CacheFailure&)>& use);
// The source of every row.
void for_each_source(const std::filesystem::path& path,
                     const std::function<void(std::int64_t row, const CacheSource&)>& use);

struct CacheCheck {
  std::int64_t rows = 0;
  std::int64_t bytes = 0;             // read and compared
  bool has_checksums = false;         // false: not written by Millrace; only the layout was checked
  std::vector<std::string> problems;  // one line each; empty: all is well
};
// Reads everything and compares it with the checksums. Damage is told as a problem, not thrown.
CacheCheck verify_cache(const std::filesystem::path& path);

}  // namespace millrace
