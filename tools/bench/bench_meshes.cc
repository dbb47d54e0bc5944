// Mesh files to vertices and faces through the loader, batches of 8; or one large mesh made here.
// Prints one JSON line: see bench_measure.h.
#include "tools/bench/bench_files.h"

#include <millrace/decoders/mesh/face_edges.h>
#include <millrace/decoders/mesh/mesh.h>
#include <millrace/decoders/mesh/mesh_write.h>

#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

namespace {

using namespace millrace;

template <typename Row>
void put(Sample& sample, const char* field, const std::vector<Row>& rows) {
  const Array& out = sample.resize(field, {static_cast<std::int64_t>(rows.size()), 3});
  std::memcpy(out.data(), rows.data(), rows.size() * sizeof(Row));
}

BenchFiles::Load mesh_loader(const MeshOptions& plain) {
  return [options = plain, bytes = std::vector<std::byte>(), mesh = Mesh()](
             const std::string& path, const LoadContext&, Sample& sample) mutable -> Status {
    if (Status status = read_file(path, bytes); !status.ok()) return status;
    options.hint = mesh_format_of(path);
    options.folder = std::filesystem::path(path).parent_path();
    Status status = decode_mesh(bytes, options, mesh);
    if (!status.ok()) {
      status.error().at(path);
      return status;
    }
    put(sample, "vertices", mesh.vertices);
    put(sample, "faces", mesh.faces);
    return {};
  };
}

// A wavy square of about this many faces.
Mesh large_mesh(std::int64_t faces) {
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
  return mesh;
}

// Measures the time of each step, and the peak memory.
void run_large(std::int64_t faces) {
  using Clock = std::chrono::steady_clock;
  Mesh mesh = large_mesh(faces);
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

}  // namespace

int main(int argc, char** argv) {
  CommandLine line("bench_meshes",
                   "Measures how fast mesh files become arrays of vertices and faces.",
                   "\nExamples:\n  bench_meshes models --workers 2 --passes 2\n"
                   "  bench_meshes . --large 1000000\n"
                   "  bench_meshes models --tidy     # cleaned, scaled and sorted for MeshGPT\n");
  BenchOptions options;
  bool tidy = false;
  std::int64_t faces = 0;
  line.options().flag("--tidy", tidy, "clean, scale and sort the meshes too");
  line.options()
      .add("--large", faces, "number of faces of one generated mesh to read instead of the files")
      .default_text("");
  return bench_main(line, options, argc, argv, [&] {
    if (faces > 0) return run_large(faces);
    // Without --tidy, only what the peers do: triangles in the order of the file.
    const MeshOptions plain{.merge_vertices = tidy,
                            .drop_degenerate_faces = tidy,
                            .drop_duplicate_faces = tidy,
                            .drop_unused_vertices = tidy,
                            .normalize = tidy,
                            .sort = tidy};
    measure_files({.workload = "meshes", .note = tidy ? "tidied, MeshGPT order" : ""}, options, 8,
                  {{.name = "vertices", .dtype = DType::float32, .shape = {-1, 3}},
                   {.name = "faces", .dtype = DType::int64, .shape = {-1, 3}}},
                  [&] { return mesh_loader(plain); });
  });
}
