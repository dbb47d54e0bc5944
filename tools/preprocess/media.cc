#include "tools/preprocess/media.h"

#include "tools/inspect/probe.h"

#include <millrace/datasets/listing/file_bytes.h>
#include <millrace/datasets/listing/printable.h>
#include <millrace/pipeline/data/adapter.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>

#include <sys/stat.h>

namespace millrace {

namespace {

class Encoded : public Adapter {
 public:
  Encoded(AnyDataset decoded, PathOf path, std::string field, bool headers_only)
      : Adapter(std::move(decoded)),
        path_(std::move(path)),
        field_(std::move(field)),
        headers_only_(headers_only) {
    std::vector<Field> fields{{.name = field_, .dtype = DType::uint8, .shape = {-1}}};
    for (const Field& f : inner().schema()) {
      if (f.text) fields.push_back(f);
    }
    schema_ = Schema(fields);
  }

  const Schema& schema() const override { return schema_; }
  Status load(std::int64_t index, const LoadContext& context, Sample& sample) const override {
    if (headers_only_) {
      MediaFacts facts;
      if (Status status = probe_media(path_(index), facts); !status.ok()) return status;
    }
    if (!headers_only_ || schema_.size() > 1) {
      Sample proof(inner().schema());
      if (Status status = inner().load(index, context, proof); !status.ok()) return status;
      for (const Field& f : schema_) {
        if (f.text) sample.set_text(f.name, proof.text(f.name));
      }
    }
    FileBytes& file = FileBytes::of_this_thread();
    if (Status status = file.read(path_(index)); !status.ok()) return status;
    auto bytes = file.bytes();
    const Array& to = sample.resize(field_, {static_cast<std::int64_t>(bytes.size())});
    std::memcpy(to.data(), bytes.data(), bytes.size());
    return {};
  }

 private:
  PathOf path_;
  std::string field_;
  bool headers_only_;
  Schema schema_;
};

}  // namespace

const std::map<std::string, ShortClip>& short_clip_rules() {
  static const std::map<std::string, ShortClip> rules = {{"repeat", ShortClip::repeat_last},
                                                         {"black", ShortClip::black},
                                                         {"loop", ShortClip::loop},
                                                         {"error", ShortClip::error}};
  return rules;
}

PixelSize parse_size(const std::string& text) {
  const char* end = text.data() + text.size();
  std::int64_t height = -1, width = -1;
  auto [stop, error] = std::from_chars(text.data(), end, height);
  bool ok = error == std::errc() && height >= 0;
  if (ok && stop == end) {
    width = height;
  } else if (ok && *stop == 'x') {
    auto second = std::from_chars(stop + 1, end, width);
    ok = second.ec == std::errc() && second.ptr == end && width >= 0;
  } else {
    ok = false;
  }
  if (!ok) {
    throw Error("--size takes 256 or 480x640 (height x width), but was given '" + text + "'")
        .kind(ErrorKind::usage);
  }
  return {height, width};
}

std::string to_string(const PixelSize& size) {
  if (size.is_own()) return "as it is";
  return std::to_string(size.height) + "x" + std::to_string(size.width);
}

void declare_store(const Options& options, StoreOptions& values) {
  options
      .add("--store", values.store,
           "what to store: decoded arrays, or encoded: the files as they are")
      .one_of({"decoded", "encoded"});
  options
      .add("--check", values.check,
           "how to check encoded files: decode them, or read their headers only")
      .one_of({"decode", "headers"});
}

AnyDataset keep_encoded(AnyDataset decoded, PathOf path, const std::string& field,
                        const StoreOptions& options) {
  return std::make_shared<Encoded>(std::move(decoded), std::move(path), field,
                                   options.check == "headers");
}

PathOf path_of(const FileList& files) {
  return [files](std::int64_t index) { return files.path(index); };
}

std::function<CacheSource(std::int64_t)> paired_sources(const std::filesystem::path& folder,
                                                        PathOf medium, PathOf text) {
  return [folder, medium = std::move(medium), text = std::move(text)](std::int64_t index) {
    std::filesystem::path path = medium(index);
    CacheSource source{.name = path.lexically_relative(folder).string()};
    for (const auto& file : {path, text(index)}) {
      struct stat status {};
      if (file.empty() || ::stat(file.c_str(), &status) != 0) continue;
      source.bytes = std::max<std::int64_t>(source.bytes, 0) + status.st_size;
      source.time_ns = std::max<std::int64_t>(
          source.time_ns, status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec);
    }
    return source;
  };
}

std::function<CacheSource(std::int64_t)> sources_of(const FileList& files) {
  return [files](std::int64_t index) {
    return CacheSource{.name = files.relative(index),
                       .bytes = files.bytes(index),
                       .time_ns = files.modified_ns(index)};
  };
}

FileListOptions listing(const std::shared_ptr<Pool>& pool) {
  FileListOptions options;
  options.pool = pool;
  options.check_files = true;  // a file that was changed in place is a new source
  return options;
}

std::int64_t shard_rows_for(const FileList& files) {
  std::int64_t bytes = 0;
  for (std::int64_t i = 0; i < files.size(); ++i)
    bytes += std::max<std::int64_t>(files.bytes(i), 0);
  std::int64_t each = std::max<std::int64_t>(bytes / std::max<std::int64_t>(files.size(), 1), 1);
  auto fitting = static_cast<std::uint64_t>(std::clamp<std::int64_t>((8 << 20) / each, 8, 4096));
  return static_cast<std::int64_t>(std::bit_floor(fitting));
}

}  // namespace millrace
