#include <millrace/decoders/byte_order.h>
#include <millrace/decoders/mesh/formats/gltf_data.h>

#include <algorithm>
#include <array>
#include <limits>

namespace millrace::detail {

namespace {

constexpr std::uint32_t json_chunk = 0x4E4F534A, binary_chunk = 0x004E4942;

enum Component {
  int8 = 5120,
  uint8 = 5121,
  int16 = 5122,
  uint16 = 5123,
  uint32 = 5125,
  f32 = 5126
};

std::size_t component_bytes(int component) {
  switch (component) {
    case int8:
    case uint8:
      return 1;
    case int16:
    case uint16:
      return 2;
    case uint32:
    case f32:
      return 4;
    default:
      return 0;
  }
}

std::size_t width_of(const std::string& type) {
  if (type == "SCALAR") return 1;
  if (type == "VEC2") return 2;
  if (type == "VEC3") return 3;
  if (type == "VEC4" || type == "MAT2") return 4;
  return 0;
}

}  // namespace

GltfData::GltfData(std::string_view bytes, const MeshBuilder& builder) : builder_(builder) {
  std::string_view document = bytes;
  if (bytes.starts_with("glTF")) split_glb(bytes, document);
  document_bytes_ = document.size();
  json_ = Json::parse(document.begin(), document.end(), nullptr, false);
  if (json_.is_discarded() || !json_.is_object()) fail("its JSON is malformed");
  std::string version;
  if (auto asset = json_.find("asset"); asset != json_.end() && asset->is_object()) {
    if (auto it = asset->find("version"); it != asset->end() && it->is_string()) version = *it;
  }
  if (!version.starts_with("2.")) {
    fail(version.empty() ? "it names no version of glTF"
                         : "glTF " + version + " is not read, 2.0 is");
  }
  loaded_.resize(count("buffers"));
}

void GltfData::fail(const std::string& reason) const {
  throw builder_.error(reason);
}

void GltfData::split_glb(std::string_view bytes, std::string_view& document) {
  if (bytes.size() < 20) fail("truncated: no room for a GLB header");
  auto version = load_little<std::uint32_t>(bytes.data() + 4);
  if (version != 2) fail("GLB " + std::to_string(version) + " is not read, 2 is");
  if (load_little<std::uint32_t>(bytes.data() + 8) > bytes.size()) {
    fail("truncated: its header promises " +
         std::to_string(load_little<std::uint32_t>(bytes.data() + 8)) + " bytes, but it has " +
         std::to_string(bytes.size()));
  }
  bytes.remove_prefix(12);
  for (bool first = true; bytes.size() >= 8; first = false) {
    std::size_t length = load_little<std::uint32_t>(bytes.data());
    auto type = load_little<std::uint32_t>(bytes.data() + 4);
    bytes.remove_prefix(8);
    if (length > bytes.size()) fail("truncated: a chunk is longer than the file");
    if (first != (type == json_chunk)) fail("its first chunk, and only that, must be JSON");
    if (first) document = bytes.substr(0, length);
    if (type == binary_chunk && !binary_chunk_) binary_chunk_ = bytes.substr(0, length);
    bytes.remove_prefix(length);
  }
}

std::uint64_t GltfData::count(std::string_view list) const {
  auto it = json_.find(list);
  if (it == json_.end()) return 0;
  if (!it->is_array()) fail(std::string(list) + " is not a list");
  return it->size();
}

const GltfData::Json& GltfData::item(std::string_view list, std::uint64_t index) const {
  if (index >= count(list)) {
    fail("it refers to " + std::string(list) + "[" + std::to_string(index) + "], but has " +
         std::to_string(count(list)));
  }
  const Json& found = (*json_.find(list))[index];
  if (!found.is_object()) fail(std::string(list) + " has an item that is no object");
  return found;
}

std::uint64_t GltfData::number(const Json& object, const char* key,
                               std::optional<std::uint64_t> fallback) const {
  auto it = object.find(key);
  if (it == object.end()) {
    if (fallback) return *fallback;
    fail(std::string(key) + " is missing");
  }
  if (it->is_number_unsigned()) return it->get<std::uint64_t>();
  // Some exporters write 3.0.
  if (it->is_number_float()) {
    auto value = it->get<double>();
    if (value >= 0 && value < 9e15 &&
        value == static_cast<double>(static_cast<std::uint64_t>(value))) {
      return static_cast<std::uint64_t>(value);
    }
  }
  fail(std::string(key) + " is not a whole number of at least 0");
}

GltfData::Run GltfData::run_of(std::uint64_t view_index, std::uint64_t offset, std::uint64_t count,
                               std::size_t width, int component) {
  const Json& view = item("bufferViews", view_index);
  std::string_view bytes = buffer(number(view, "buffer"));
  std::uint64_t start = number(view, "byteOffset", 0), length = number(view, "byteLength");
  std::uint64_t element = width * component_bytes(component);
  std::uint64_t stride = number(view, "byteStride", element);
  if (stride == 0) stride = element;
  if (start > bytes.size() || length > bytes.size() - start) {
    fail("bufferViews[" + std::to_string(view_index) + "] reaches beyond its buffer");
  }
  if (stride < element || stride > 65536) {
    fail("bufferViews[" + std::to_string(view_index) + "] has a stride of " +
         std::to_string(stride));
  }
  // By subtraction: a sum could overflow and pass the check.
  if (count > 0 && (offset > length || element > length - offset ||
                    (count - 1) > (length - offset - element) / stride)) {
    fail("truncated: an accessor of " + std::to_string(count) +
         " elements reaches beyond bufferViews[" + std::to_string(view_index) + "]");
  }
  std::size_t skipped = std::min<std::uint64_t>(start + offset, bytes.size());
  return {bytes.substr(skipped), count, width, static_cast<std::size_t>(stride), component, false};
}

GltfData::Run GltfData::accessor_run(const Json& accessor) {
  auto type = accessor.find("type");
  std::size_t width = type != accessor.end() && type->is_string() ? width_of(*type) : 0;
  auto component =
      static_cast<int>(std::min<std::uint64_t>(number(accessor, "componentType"), 9999));
  if (width == 0 || component_bytes(component) == 0) fail("an accessor has an unknown type");
  std::uint64_t count = number(accessor, "count");
  Run run;
  if (accessor.contains("bufferView")) {
    run = run_of(number(accessor, "bufferView"), number(accessor, "byteOffset", 0), count, width,
                 component);
  } else {
    // Zeros without a buffer: a small document could declare any number of them.
    if (count > document_bytes_) fail("an accessor of " + std::to_string(count) + " zeros");
    run = {{}, count, width, 0, component, false};
  }
  auto normalized = accessor.find("normalized");
  run.normalized = normalized != accessor.end() && normalized->is_boolean() && *normalized;
  return run;
}

std::uint64_t GltfData::accessor_count(std::uint64_t accessor) const {
  return number(item("accessors", accessor), "count");
}

double GltfData::value(const Run& run, std::uint64_t element, std::size_t k) const {
  if (run.bytes.empty()) return 0;
  const char* at = run.bytes.data() + element * run.stride + k * component_bytes(run.component);
  auto scaled = [&](double value, double most) {
    return run.normalized ? std::max(value / most, -1.0) : value;
  };
  switch (run.component) {
    case int8:
      return scaled(load_little<std::int8_t>(at), 127);
    case uint8:
      return scaled(load_little<std::uint8_t>(at), 255);
    case int16:
      return scaled(load_little<std::int16_t>(at), 32767);
    case uint16:
      return scaled(load_little<std::uint16_t>(at), 65535);
    case uint32:
      return load_little<std::uint32_t>(at);
    default:
      return static_cast<double>(load_little<float>(at));
  }
}

void GltfData::apply_sparse(const Json& accessor, const Run& run, std::vector<double>& out) {
  auto sparse = accessor.find("sparse");
  if (sparse == accessor.end()) return;
  auto part = [&](const char* key) -> const Json& {
    auto it = sparse->find(key);
    if (it == sparse->end() || !it->is_object()) fail(std::string("sparse has no ") + key);
    return *it;
  };
  if (!sparse->is_object()) fail("sparse is no object");
  const Json &indices = part("indices"), &values = part("values");
  std::uint64_t count = number(*sparse, "count");
  auto component =
      static_cast<int>(std::min<std::uint64_t>(number(indices, "componentType"), 9999));
  if (component != uint8 && component != uint16 && component != uint32) {
    fail("sparse indices have an unknown type");
  }
  Run places =
      run_of(number(indices, "bufferView"), number(indices, "byteOffset", 0), count, 1, component);
  Run data = run_of(number(values, "bufferView"), number(values, "byteOffset", 0), count, run.width,
                    run.component);
  data.normalized = run.normalized;
  for (std::uint64_t i = 0; i < count; ++i) {
    auto place = static_cast<std::uint64_t>(value(places, i, 0));
    if (place >= run.count) fail("a sparse index is out of range");
    for (std::size_t k = 0; k < run.width; ++k) out[place * run.width + k] = value(data, i, k);
  }
}

void GltfData::read_floats(std::uint64_t index, std::size_t width, std::vector<double>& out) {
  const Json& accessor = item("accessors", index);
  Run run = accessor_run(accessor);
  if (run.width != width) fail("an accessor has not the width that its use needs");
  out.resize(run.count * width);
  if (run.component == f32 && !run.bytes.empty()) {
    for (std::uint64_t i = 0; i < run.count; ++i) {
      float row[4];
      std::memcpy(row, run.bytes.data() + i * run.stride, width * sizeof(float));
      for (std::size_t k = 0; k < width; ++k) out[i * width + k] = static_cast<double>(row[k]);
    }
  } else {
    for (std::uint64_t i = 0; i < out.size(); ++i) out[i] = value(run, i / width, i % width);
  }
  apply_sparse(accessor, run, out);
}

void GltfData::read_indices(std::uint64_t index, std::vector<std::int64_t>& out) {
  const Json& accessor = item("accessors", index);
  Run run = accessor_run(accessor);
  bool integer = run.component == uint8 || run.component == uint16 || run.component == uint32;
  if (run.width != 1 || !integer || run.normalized) fail("indices must be unsigned integers");
  if (accessor.contains("sparse")) fail("sparse indices are not read");
  out.resize(run.count);
  for (std::uint64_t i = 0; i < run.count; ++i) {
    out[i] = static_cast<std::int64_t>(value(run, i, 0));
  }
}

std::string_view GltfData::buffer(std::uint64_t index) {
  const Json& buffer = item("buffers", index);
  std::uint64_t length = number(buffer, "byteLength");
  auto uri = buffer.find("uri");
  std::string_view bytes;
  if (uri == buffer.end()) {
    if (index != 0 || !binary_chunk_) fail("buffers[" + std::to_string(index) + "] has no data");
    bytes = *binary_chunk_;
  } else {
    if (!uri->is_string()) fail("a uri is no string");
    bytes = load_uri(uri->get_ref<const std::string&>(), index);
  }
  if (length > bytes.size()) {
    fail("truncated: buffers[" + std::to_string(index) + "] promises " + std::to_string(length) +
         " bytes, but " + std::to_string(bytes.size()) + " are there");
  }
  return bytes.substr(0, length);
}

}  // namespace millrace::detail
