// Mesh files to vertices and faces through the loader, measured as the peers' scripts measure
// theirs: every file decoded to float32 [n, 3] and int64 [m, 3], batches of 8.
#include "tools/bench_measure.h"

#include <millrace/decoders/face_edges.h>
#include <millrace/decoders/mesh.h>
#include <millrace/decoders/mesh_write.h>
#include <millrace/pipeline/loader.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

using namespace millrace;
namespace fs = std::filesystem;

// Into memory that is used again; one call for the size and one for the bytes.
Status read_file(const std::string& path, std::vector<std::byte>& bytes) {
  int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return Error("cannot open").at(path);
  struct stat info {};
  fstat(file, &info);
  bytes.resize(static_cast<std::size_t>(info.st_size));
  std::size_t have = 0;
  while (have < bytes.size()) {
    ssize_t got = read(file, bytes.data() + have, bytes.size() - have);
    if (got <= 0) break;
    have += static_cast<std::size_t>(got);
  }
  close(file);
  return have == bytes.size() ? Status() : Error("cannot read").at(path);
}

class MeshFiles : public Dataset {
 public:
  MeshFiles(std::vector<std::string> paths, MeshOptions options)
      : paths_(std::move(paths)), options_(std::move(options)) {}

  std::int64_t size() const override { return static_cast<std::int64_t>(paths_.size()); }
  const Schema& schema() const override { return schema_; }
  std::string describe(std::int64_t index) const override { return path(index); }

  Status load(std::int64_t index, const LoadContext&, Sample& sample) const override {
    static thread_local std::vector<std::byte> bytes;
    static thread_local Mesh mesh;
    if (Status status = read_file(path(index), bytes); !status.ok()) return status;
    MeshOptions options = options_;
    options.hint = mesh_format_of(path(index));
    options.folder = fs::path(path(index)).parent_path();
    Status status = decode_mesh(bytes, options, mesh);
    if (!status.ok()) {
      status.error().at(path(index));
      return status;
    }
    put(sample, "vertices", mesh.vertices);
    put(sample, "faces", mesh.faces);
    return {};
  }

 private:
  const std::string& path(std::int64_t index) const {
    return paths_[static_cast<std::size_t>(index)];
  }
  template <typename Row>
  static void put(Sample& sample, const char* field, const std::vector<Row>& rows) {
    const Array& out = sample.resize(field, {static_cast<std::int64_t>(rows.size()), 3});
    std::memcpy(out.data(), rows.data(), rows.size() * sizeof(Row));
  }

  std::vector<std::string> paths_;
  MeshOptions options_;
  Schema schema_{{.name = "vertices", .dtype = DType::float32, .shape = {-1, 3}},
                 {.name = "faces", .dtype = DType::int64, .shape = {-1, 3}}};
};

struct Options {
  std::string folder, list;
  int workers = 2;
  std::int64_t passes = 2;
  bool tidy = false;
  std::int64_t faces = 0;
};

// One large mesh made here: how long each part takes, and how much memory all of it.
void run_large(std::int64_t faces) {
  using Clock = std::chrono::steady_clock;
  Mesh mesh;
  auto side = static_cast<std::int64_t>(std::sqrt(static_cast<double>(faces) / 2));
  for (std::int64_t i = 0; i < (side + 1) * (side + 1); ++i) {
    auto x = static_cast<float>(i % (side + 1)), y = static_cast<float>(i / (side + 1));
    mesh.vertices.push_back({x, y, std::sin(x) * std::cos(y)});
  }
  for (std::int64_t i = 0; i < side * side; ++i) {
    std::int64_t a = i / side * (side + 1) + i % side, b = a + side + 1;
    mesh.faces.push_back({a, a + 1, b});
    mesh.faces.push_back({b, a + 1, b + 1});
  }
  nlohmann::json line{{"workload", "one large mesh"}, {"faces", mesh.faces.size()}};
  auto timed = [&](const char* name, const auto& work) {
    auto start = Clock::now();
    Status status = work();
    if (!status.ok()) throw std::move(status.error());
    line[name] = std::chrono::duration<double>(Clock::now() - start).count();
  };
  std::string obj = encode_obj(mesh), ply = encode_ply(mesh);
  mesh = {};
  auto decode = [&](const std::string& file) {
    return decode_mesh(std::as_bytes(std::span(file)), {}, mesh);
  };
  std::vector<std::array<std::int64_t, 2>> pairs;
  timed("obj_to_tidy_mesh_s", [&] { return decode(obj); });
  timed("ply_to_tidy_mesh_s", [&] { return decode(ply); });
  timed("face_edges_s", [&] { return face_edges(mesh.faces, {}, pairs); });
  line["pairs"] = pairs.size();
  line["peak_rss_mb"] = peak_rss_mb();
  std::cout << line.dump() << std::endl;
}

std::vector<std::string> find_files(const Options& o) {
  std::vector<std::string> paths;
  if (!o.list.empty()) {
    std::ifstream lines(o.list);
    for (std::string line; std::getline(lines, line);) {
      if (!line.empty()) paths.push_back((fs::path(o.folder) / line).string());
    }
  } else {
    for (const auto& entry : fs::recursive_directory_iterator(o.folder)) {
      bool known = mesh_format_of(entry.path().string()) != MeshFormat::unknown;
      if (known && entry.is_regular_file()) paths.push_back(entry.path().string());
    }
  }
  std::sort(paths.begin(), paths.end());
  if (paths.empty()) throw Error("no mesh files").at(o.folder).kind(ErrorKind::usage);
  return paths;
}

void run(const Options& o) {
  // What the peers do and no more, unless asked: triangles in the file's order.
  MeshOptions plain{.merge_vertices = o.tidy,
                    .drop_degenerate_faces = o.tidy,
                    .drop_duplicate_faces = o.tidy,
                    .drop_unused_vertices = o.tidy,
                    .normalize = o.tidy,
                    .sort = o.tidy};
  std::vector<std::string> paths = find_files(o);
  Measurement what{.workload = "W6-mesh",
                   .version = "0.1.0",
                   .note = o.tidy ? "tidied, MeshGPT order" : "",
                   .workers = o.workers,
                   .files = static_cast<std::int64_t>(paths.size()),
                   .passes = o.passes};
  Loader loader(MeshFiles(std::move(paths), plain),
                {.batch_size = 8, .shuffle = true, .threads = o.workers});
  std::int64_t faces = 0;
  measure(what, loader, [&](const Batch& batch) {
    for (const Array& rows : batch.list("faces")) faces += rows.shape()[0];
  });
  std::fprintf(stderr, "%lld bad of %lld files, %lld triangles\n",
               static_cast<long long>(loader.stats().bad_samples),
               static_cast<long long>(what.files), static_cast<long long>(faces));
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Decodes a folder of meshes through the loader and prints one line of JSON.");
  Options o;
  app.footer(
      "\nExamples:\n  bench_meshes models --workers 2 --passes 2\n"
      "  bench_meshes --large 1000000\n"
      "  bench_meshes models --tidy     # cleaned, scaled and sorted for MeshGPT\n");
  app.add_option("folder", o.folder);
  app.add_option("--large", o.faces, "instead of a folder, one mesh of this many faces");
  app.add_option("--list", o.list, "take the paths in this file, relative to the folder");
  app.add_option("--workers", o.workers)->capture_default_str();
  app.add_option("--passes", o.passes, "timed passes over the files")->capture_default_str();
  app.add_flag("--tidy", o.tidy, "clean, scale and sort too");
  CLI11_PARSE(app, argc, argv);
  try {
    if (o.faces == 0 && o.folder.empty()) {
      throw Error("give a folder, or --large").kind(ErrorKind::usage);
    }
    o.faces > 0 ? run_large(o.faces) : run(o);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_meshes: %s\n", error.what());
    return 1;
  }
}
