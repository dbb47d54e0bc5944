// Private: a glTF document, its buffers and accessors. Every number in the document is checked
// before it is used. Errors are thrown here and become a Status in read_gltf().
#pragma once

#include <millrace/decoders/mesh/mesh_builder.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace millrace::detail {

class GltfData {
 public:
  using Json = nlohmann::json;

  // `bytes` is JSON or GLB, and must outlive this.
  GltfData(std::string_view bytes, const MeshBuilder& builder);

  const Json& json() const { return json_; }

  // The item of a top-level list such as "nodes"; throws if there is none.
  const Json& item(std::string_view list, std::uint64_t index) const;
  std::uint64_t count(std::string_view list) const;

  // A member that is an integer of at least 0. Throws if it is something else, or if it is missing
  // and there is no fallback.
  std::uint64_t number(const Json& object, const char* key,
                       std::optional<std::uint64_t> fallback = {}) const;

  // The number of elements of an accessor, checked against the size of its buffer.
  std::uint64_t accessor_count(std::uint64_t accessor) const;
  // Reads `count` elements of `width` numbers each as doubles, normalised if the accessor says so.
  void read_floats(std::uint64_t accessor, std::size_t width, std::vector<double>& out);
  void read_indices(std::uint64_t accessor, std::vector<std::int64_t>& out);

  [[noreturn]] void fail(const std::string& reason) const;

 private:
  // A run of numbers in a buffer; plain and sparse accessors are read as one or several of them.
  struct Run {
    std::string_view bytes;  // empty: zeros
    std::uint64_t count = 0;
    std::size_t width = 1, stride = 0;
    int component = 0;
    bool normalized = false;
  };

  void split_glb(std::string_view bytes, std::string_view& document);
  std::string_view buffer(std::uint64_t index);
  std::string_view load_uri(std::string_view uri, std::uint64_t index);
  std::string external(std::string_view uri);
  Run run_of(std::uint64_t view, std::uint64_t offset, std::uint64_t count, std::size_t width,
             int component);
  Run accessor_run(const Json& accessor);
  double value(const Run& run, std::uint64_t element, std::size_t k) const;
  void apply_sparse(const Json& accessor, const Run& run, std::vector<double>& out);

  const MeshBuilder& builder_;
  Json json_;
  std::size_t document_bytes_ = 0;
  std::uint64_t loaded_bytes_ = 0;
  std::optional<std::string_view> binary_chunk_;
  std::vector<std::optional<std::string>> loaded_;  // buffers outside of the GLB
};

// The decoded bytes, or nothing if the text is not base64.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace millrace::detail
