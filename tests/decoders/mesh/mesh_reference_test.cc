// Against trimesh and numpy: the same shapes in every format, written by trimesh itself.
#include "tests/decoders/mesh/mesh_helpers.h"
#include "tests/reference.h"

#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace millrace {
namespace {

// Writes the files, and for each the mesh as numpy cleans, scales and sorts it.
constexpr const char* script = R"(
import sys, os, struct, numpy as np, trimesh
out = sys.argv[1]
c = trimesh.creation
shapes = dict(box=c.box((1, 2, 3)), ball=c.icosphere(2), tube=c.cylinder(1, 2, sections=24),
              capsule=c.capsule(2, 0.5), ring=c.torus(1, 0.3), cone=c.cone(1, 2),
              washer=c.annulus(0.5, 1, 0.2))
shapes['twice'] = trimesh.util.concatenate([shapes['box'], shapes['box'].copy(), shapes['cone']])

def big_endian(m):
    head = ('ply\nformat binary_big_endian 1.0\nelement vertex %d\nproperty double x\n'
            'property double y\nproperty double z\nproperty uchar q\nelement face %d\n'
            'property list uint uint vertex_index\nend_header\n') % (len(m.vertices), len(m.faces))
    return head.encode() + b''.join(struct.pack('>3dB', *v, 1) for v in m.vertices) + \
        b''.join(struct.pack('>4I', 3, *f) for f in m.faces)

def tidy(v, f):
    v = (np.asarray(v, np.float64)).astype(np.float32) + np.float32(0)
    v, back = np.unique(v, axis=0, return_inverse=True)
    f = back.reshape(-1)[np.asarray(f)]
    f = f[(f[:, 0] != f[:, 1]) & (f[:, 1] != f[:, 2]) & (f[:, 0] != f[:, 2])]
    _, first = np.unique(np.sort(f, axis=1), axis=0, return_index=True)
    f = f[np.sort(first)]
    used = np.unique(f); v = v[used]; f = np.searchsorted(used, f)
    w = v.astype(np.float64); lo, hi = w.min(0), w.max(0)
    v = np.clip((w - (lo + hi) / 2) * (2 / (hi - lo).max()), -1, 1).astype(np.float32)
    order = np.lexsort((v[:, 0], v[:, 1], v[:, 2])); rank = np.empty(len(v), np.int64)
    rank[order] = np.arange(len(v)); v = v[order]; f = rank[f]
    f = np.stack([np.roll(t, -t.argmin()) for t in f])
    return v, f[np.lexsort((f[:, 2], f[:, 1], f[:, 0]))]

files = []
for name, m in shapes.items():
    def put(extension, data):
        path = os.path.join(out, name + extension)
        open(path, 'wb').write(data if isinstance(data, bytes) else data.encode()); files.append(path)
    put('.obj', m.export(file_type='obj'))
    put('.ply', m.export(file_type='ply'))
    put('_ascii.ply', m.export(file_type='ply', encoding='ascii'))
    put('_big.ply', big_endian(m))
    put('.stl', m.export(file_type='stl'))
    put('_ascii.stl', m.export(file_type='stl_ascii'))
    put('.off', m.export(file_type='off'))
    put('.glb', m.export(file_type='glb'))
    folder = os.path.join(out, name + '_gltf'); os.mkdir(folder)
    for part, data in m.export(file_type='gltf').items(): open(os.path.join(folder, part), 'wb').write(data)
    files.append(os.path.join(folder, 'model.gltf'))
for path in files:
    m = trimesh.load(path, force='mesh', process=False)
    v, f = tidy(m.vertices, m.faces)
    v.tofile(path + '.v'); f.astype(np.int64).tofile(path + '.f')
    print(path, len(m.vertices), len(m.faces), repr(float(m.area)))
scene = trimesh.Scene()
for i, (name, m) in enumerate(shapes.items()):
    t = trimesh.transformations.rotation_matrix(0.3 * i, [1, i, 2]); t[:3, 3] = [i, -i, 2 * i]
    if i % 2: t[:3, :3] *= [[-1.5], [1], [2]]
    scene.add_geometry(m, transform=t)
path = os.path.join(out, 'scene.glb'); open(path, 'wb').write(scene.export(file_type='glb'))
m = trimesh.load(path, force='mesh', process=False)
print(path, len(m.vertices), len(m.faces), repr(float(m.area)))
)";

template <typename T>
std::vector<T> read_raw(const std::string& path) {
  std::string bytes = read_file(path);
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

void compare(const std::string& path, std::size_t vertices, std::size_t faces, double area) {
  SCOPED_TRACE(path);
  std::string bytes = read_file(path);
  Mesh mesh;
  MeshOptions options = untouched();
  options.folder = std::filesystem::path(path).parent_path();
  Status status = decode_text_mesh(bytes, options, mesh);
  ASSERT_TRUE(status.ok()) << status.error().what();
  EXPECT_EQ(mesh.format, mesh_format_of(path));
  EXPECT_EQ(mesh.vertices.size(), vertices);
  EXPECT_EQ(mesh.faces.size(), faces);
  EXPECT_NEAR(mesh_area(mesh), area, 1e-5 * area);
  if (!std::filesystem::exists(path + ".v")) return;

  status = decode_text_mesh(bytes, {.folder = options.folder}, mesh);
  ASSERT_TRUE(status.ok()) << status.error().what();
  auto expected_vertices = read_raw<std::array<float, 3>>(path + ".v");
  auto expected_faces = read_raw<std::array<std::int64_t, 3>>(path + ".f");
  EXPECT_TRUE(mesh.vertices == expected_vertices);
  EXPECT_TRUE(mesh.faces == expected_faces);
  EXPECT_EQ(mesh.counts.file_vertices - mesh.counts.merged_vertices - mesh.counts.unused_vertices,
            static_cast<std::int64_t>(mesh.vertices.size()));
  EXPECT_EQ(mesh.counts.file_faces - mesh.counts.degenerate_faces - mesh.counts.duplicate_faces,
            static_cast<std::int64_t>(mesh.faces.size()));
}

TEST(MeshReference, EveryFormatGivesTheCountsAreasAndOrderOfTrimeshAndNumpy) {
  TemporaryFolder folder;
  std::istringstream lines(run_python(script, folder.path().string()));
  std::string path;
  std::size_t vertices = 0, faces = 0, files = 0;
  double area = 0;
  while (lines >> path >> vertices >> faces >> area) {
    compare(path, vertices, faces, area);
    ++files;
  }
  EXPECT_GE(files, 60U);
}

TEST(MeshReference, DiscretisesAsThePythonPackage) {
  std::istringstream expected(run_python(R"(
import numpy as np
f = np.float32
t = np.concatenate([np.linspace(-1.2, 1.2, 4001), (np.arange(128) + 0.5) / 64 - 1, np.arange(129) / 64 - 1]).astype(f)
for n in (2, 64, 128, 1000):
    q = np.clip(np.round((t - f(-1)) / f(2) * f(n) - f(0.5)), 0, n - 1).astype(np.int64)
    back = (q.astype(f) + f(0.5)) / f(n) * f(2) + f(-1)
    for a, b, c in zip(t.tolist(), q.tolist(), back.tolist()): print(n, repr(a), b, repr(c))
)"));
  int bins = 0;
  double t = 0, back = 0;
  std::int64_t bin = 0, rows = 0;
  while (expected >> bins >> t >> bin >> back) {
    ASSERT_EQ(discretize(static_cast<float>(t), bins), bin) << t << " in " << bins;
    ASSERT_EQ(undiscretize(bin, bins), static_cast<float>(back)) << bin << " of " << bins;
    ++rows;
  }
  EXPECT_GT(rows, 16'000);
}

}  // namespace
}  // namespace millrace
