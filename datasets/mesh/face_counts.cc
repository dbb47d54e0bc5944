#include "face_counts.h"

#include <millrace/datasets/caches/checksum.h>
#include <millrace/datasets/folders/media_files.h>
#include <millrace/datasets/listing/derived_file.h>
#include <millrace/datasets/listing/file_bytes.h>
#include <millrace/datasets/listing/printable.h>
#include <millrace/pipeline/base/log.h>
#include <millrace/pipeline/base/parallel_for.h>

#include <charconv>
#include <map>
#include <sstream>
#include <string>

namespace millrace::detail {

namespace {

constexpr std::string_view counts_kind = "MRFACES1";

// The state of a file when its faces were counted.
struct Stamp {
  std::int64_t bytes = -1, modified_ns = -1;
  friend bool operator==(const Stamp&, const Stamp&) = default;
};
struct Known {
  Stamp stamp;
  std::int64_t faces = 0;
};

// The options that the number of faces depends on.
std::string options_key(const MeshOptions& o) {
  std::string key;
  for (bool flag :
       {o.merge_vertices, o.drop_degenerate_faces, o.drop_duplicate_faces, o.normalize}) {
    key += flag ? '1' : '0';
  }
  return key + "," + std::to_string(o.bins);
}

// Lines of "bytes modified faces name". A name may contain anything but a line break.
std::map<std::string, Known> read_counts(const std::filesystem::path& path) {
  std::map<std::string, Known> counts;
  const std::optional<std::string> payload = read_derived_file(path, counts_kind);
  std::istringstream lines(payload.value_or(""));
  Known known;
  while (lines >> known.stamp.bytes >> known.stamp.modified_ns >> known.faces) {
    std::string name;
    lines.ignore(1);
    if (!std::getline(lines, name)) break;
    counts[name] = known;
  }
  return counts;
}

void write_counts(const std::filesystem::path& path, const std::map<std::string, Known>& counts) {
  std::string payload;
  for (const auto& [name, known] : counts) {
    if (known.faces == 0 || name.find('\n') != std::string::npos) continue;
    payload += std::to_string(known.stamp.bytes) + " " + std::to_string(known.stamp.modified_ns) +
               " " + std::to_string(known.faces) + " " + name + "\n";
  }
  std::error_code ignored;
  std::filesystem::create_directories(path.parent_path(), ignored);
  if (Status status = write_derived_file(path, counts_kind, payload); !status.ok()) {
    log(LogLevel::warning, printable(path) + ": " + status.error().reason() +
                               "; faces are counted again at the next start");
  }
}

}  // namespace

Status decode_mesh_file(const std::filesystem::path& path, MeshOptions options, Mesh& mesh) {
  FileBytes& file = FileBytes::of_this_thread();
  if (Status status = file.read(path); !status.ok()) return status;
  options.hint = mesh_format_of(path.native());
  options.folder = path.parent_path();
  return at_file(decode_mesh(file.bytes(), options, mesh), path);
}

std::string over_long_reason(std::int64_t faces, std::int64_t max_faces) {
  return "it has " + std::to_string(faces) + " faces, more than max_faces (" +
         std::to_string(max_faces) + ")";
}

std::vector<std::int64_t> count_faces(const StemPairs& pairs, const MeshOptions& options,
                                      const std::filesystem::path& cache, Pool& pool) {
  const std::string place =
      std::filesystem::absolute(pairs.media.folder()).lexically_normal().string();
  const std::filesystem::path file =
      cache / (to_hex(checksum_of(place + "\n" + options_key(options))) + ".faces");
  std::map<std::string, Known> known;
  if (!cache.empty()) known = read_counts(file);
  std::vector<Known> found(static_cast<std::size_t>(pairs.size()));
  std::vector<std::int64_t> unknown;
  for (std::int64_t i = 0; i < pairs.size(); ++i) {
    const std::int64_t at = pairs.media_of[static_cast<std::size_t>(i)];
    const Stamp now{pairs.media.bytes(at), pairs.media.modified_ns(at)};
    const auto old = known.find(pairs.media.relative(at));
    Known& mine = found[static_cast<std::size_t>(i)];
    if (old != known.end() && old->second.stamp == now) mine = old->second;
    if (mine.faces == 0) unknown.push_back(i);
    mine.stamp = now;
  }
  parallel_for(pool, static_cast<std::int64_t>(unknown.size()), [&](std::int64_t i) {
    const std::int64_t sample = unknown[static_cast<std::size_t>(i)];
    thread_local Mesh mesh;
    const bool ok = decode_mesh_file(pairs.media_path(sample), options, mesh).ok();
    found[static_cast<std::size_t>(sample)].faces =
        ok ? static_cast<std::int64_t>(mesh.faces.size()) : 0;
  });
  std::vector<std::int64_t> faces;
  for (std::size_t i = 0; i < found.size(); ++i) {
    faces.push_back(found[i].faces);
    if (!cache.empty()) known[pairs.media.relative(pairs.media_of[i])] = found[i];
  }
  if (!cache.empty() && !unknown.empty()) write_counts(file, known);
  return faces;
}

void leave_out_over_long(StemPairs& pairs, std::vector<std::int64_t>& lengths,
                         std::int64_t max_faces) {
  std::vector<LeftOut> over_long;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] > max_faces) {
      over_long.push_back({printable(pairs.media_path(static_cast<std::int64_t>(i))),
                           over_long_reason(lengths[i], max_faces)});
      continue;
    }
    pairs.media_of[kept] = pairs.media_of[i];
    pairs.text_of[kept] = pairs.text_of[i];
    lengths[kept++] = lengths[i];
  }
  const std::string folder = printable(pairs.media.folder());
  if (kept == 0) {
    throw Error("all " + std::to_string(lengths.size()) +
                " meshes have more faces than max_faces (" + std::to_string(max_faces) + ")")
        .at(folder)
        .stage("mesh")
        .kind(ErrorKind::usage);
  }
  pairs.media_of.resize(kept);
  pairs.text_of.resize(kept);
  lengths.resize(kept);
  log_left_out(folder, over_long);
  pairs.left_out.insert(pairs.left_out.end(), over_long.begin(), over_long.end());
}

}  // namespace millrace::detail
