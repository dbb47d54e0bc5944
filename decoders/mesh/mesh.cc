#include <millrace/decoders/mesh/formats/text_cursor.h>
#include <millrace/decoders/mesh/mesh.h>
#include <millrace/decoders/mesh/mesh_builder.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <new>

namespace millrace {

using namespace detail;

namespace {

// The first word that is not in a comment, for text formats.
std::string_view first_word(std::string_view bytes) {
  TextCursor in(bytes);
  for (in.skip_spaces(); in.peek() == '#'; in.skip_spaces()) in.skip_line();
  return in.word();
}

bool starts_as_off(std::string_view bytes) {
  std::string_view word = first_word(bytes.substr(0, 4096));
  std::size_t at = word.find("OFF");
  return at != word.npos && at <= 4 && (at + 3 == word.size() || is_digit(word[at + 3]));
}

// OBJ has no magic number: one line that starts with an OBJ keyword is enough.
bool looks_like_obj(std::string_view bytes) {
  for (TextCursor in(bytes.substr(0, 65536)); !in.done(); in.skip_line()) {
    std::string_view word = in.word();
    if (word == "v" || word == "vn" || word == "vt" || word == "f" || word == "mtllib") return true;
  }
  return false;
}

constexpr const char* copy_again = "Copy it again, or leave it out";

Status read(std::string_view bytes, MeshFormat format, MeshBuilder& builder) {
  switch (format) {
    case MeshFormat::obj:
      return read_obj(bytes, builder);
    case MeshFormat::ply:
      return read_ply(bytes, builder);
    case MeshFormat::stl:
      return read_stl(bytes, builder);
    case MeshFormat::off:
      return read_off(bytes, builder);
    case MeshFormat::gltf:
      return read_gltf(bytes, builder);
    case MeshFormat::unknown:
      break;
  }
  return Error("not a mesh that is known: neither OBJ, PLY, STL, OFF nor glTF").stage("mesh");
}

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

std::string_view to_string(MeshFormat format) {
  switch (format) {
    case MeshFormat::obj:
      return "obj";
    case MeshFormat::ply:
      return "ply";
    case MeshFormat::stl:
      return "stl";
    case MeshFormat::off:
      return "off";
    case MeshFormat::gltf:
      return "gltf";
    case MeshFormat::unknown:
      break;
  }
  return "mesh";
}

MeshFormat mesh_format_of(std::string_view path) {
  std::size_t dot = path.rfind('.');
  if (dot == path.npos) return MeshFormat::unknown;
  std::string extension(path.substr(dot + 1));
  for (char& c : extension) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  if (extension == "glb") return MeshFormat::gltf;
  for (auto format :
       {MeshFormat::obj, MeshFormat::ply, MeshFormat::stl, MeshFormat::off, MeshFormat::gltf}) {
    if (extension == to_string(format)) return format;
  }
  return MeshFormat::unknown;
}

MeshFormat sniff_mesh(std::span<const std::byte> bytes, MeshFormat hint) {
  std::string_view text = as_text(bytes);
  if (text.starts_with("glTF")) return MeshFormat::gltf;
  if (text.starts_with("ply\n") || text.starts_with("ply\r")) return MeshFormat::ply;
  if (has_binary_stl_size(text)) return MeshFormat::stl;
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  std::string_view word = first_word(text);
  if (word == "solid" || word == "SOLID") return MeshFormat::stl;
  if (word.starts_with("{")) return MeshFormat::gltf;
  if (starts_as_off(text)) return MeshFormat::off;
  if (hint != MeshFormat::unknown) return hint;
  return looks_like_obj(text) ? MeshFormat::obj : MeshFormat::unknown;
}

Status decode_mesh(std::span<const std::byte> bytes, const MeshOptions& options, Mesh& mesh) {
  MeshFormat format = options.hint;
  try {
    if (bytes.empty()) return Error("the file is empty").stage("mesh").hint(copy_again);
    format = sniff_mesh(bytes, options.hint);
    std::string_view text = as_text(bytes);
    if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
    bool wide = text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF");
    if (wide && format != MeshFormat::stl) {
      return Error("text in UTF-16").stage("mesh").hint("Convert it with: iconv -t UTF-8");
    }
    MeshBuilder builder(options, format, mesh);
    Status status = read(text, format, builder);
    if (status.ok()) status = builder.finish();
    if (status.ok()) status = tidy_mesh(options, mesh);
    if (!status.ok() && status.error().hint().empty()) {
      status.error().hint("Check that the file is whole, or write it again as another format");
    }
    return status;
  } catch (const std::bad_alloc&) {
    return Error("not enough memory").stage(std::string(to_string(format)));
  } catch (const std::exception& error) {
    return Error(error.what()).stage(std::string(to_string(format)));
  }
}

double mesh_area(const Mesh& mesh) {
  double area = 0;
  for (const auto& face : mesh.faces) {
    const auto& a = mesh.vertices[static_cast<std::size_t>(face[0])];
    const auto& b = mesh.vertices[static_cast<std::size_t>(face[1])];
    const auto& c = mesh.vertices[static_cast<std::size_t>(face[2])];
    double u[3], v[3];
    for (std::size_t k = 0; k < 3; ++k) {
      u[k] = static_cast<double>(b[k]) - static_cast<double>(a[k]);
      v[k] = static_cast<double>(c[k]) - static_cast<double>(a[k]);
    }
    area += 0.5 * std::hypot(u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2],
                             u[0] * v[1] - u[1] * v[0]);
  }
  return area;
}

// In float32 and in this order of operations, to get the same bins as the Python package.
std::int64_t discretize(float t, int bins, float low, float high) {
  float scaled = (t - low) / (high - low) * static_cast<float>(bins) - 0.5F;
  float rounded = std::nearbyint(scaled);
  return static_cast<std::int64_t>(std::clamp(rounded, 0.0F, static_cast<float>(bins - 1)));
}

float undiscretize(std::int64_t bin, int bins, float low, float high) {
  return (static_cast<float>(bin) + 0.5F) / static_cast<float>(bins) * (high - low) + low;
}

}  // namespace millrace
