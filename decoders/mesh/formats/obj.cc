// Wavefront OBJ. It has no header, so limits are checked while the lines are read. Free-form curves
// and surfaces, materials and groups are ignored.
#include <millrace/decoders/mesh/formats/text_cursor.h>
#include <millrace/decoders/mesh/mesh_builder.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::detail {

namespace {

class ObjReader {
 public:
  ObjReader(std::string_view text, MeshBuilder& builder) : in_(text), builder_(builder) {}

  Status read() {
    for (; !in_.done(); in_.skip_line()) {
      in_.skip_blanks();
      char first = in_.peek();
      if (first != 'v' && first != 'f' && first != 'l' && first != 'p') continue;
      in_.advance();
      // Keywords of several letters ("vt", "vn", "fo") are ignored here.
      if (!is_blank(in_.peek())) {
        if (first == 'f' && in_.at_line_end()) return bad("a face has no corners");
        continue;
      }
      Status status = statement(first);
      if (!status.ok()) return status;
    }
    return {};
  }

 private:
  Status statement(char which) {
    if (which == 'v') return vertex();
    if (which == 'f') return face();
    builder_.skip_element();
    while (!next_on_line()) in_.word();  // a statement may continue on the next line
    return {};
  }

  Status bad(const std::string& reason) const {
    return builder_.error("line " + std::to_string(in_.line_number()) + ": " + reason);
  }

  // True at the end of the statement. A backslash before a line end continues it on the next line.
  bool next_on_line() {
    for (;;) {
      in_.skip_blanks();
      if (in_.at_line_end()) return true;
      if (in_.peek() != '\\') return false;
      in_.advance();
      in_.skip_blanks();
      if (!in_.at_line_end()) return false;
      if (in_.done()) return true;
      in_.advance();
    }
  }

  // A fourth number (the weight) and colours after it are ignored.
  Status vertex() {
    double v[3];
    for (double& coordinate : v) {
      if (next_on_line() || !in_.number(coordinate)) return bad("a vertex needs three numbers");
    }
    return builder_.add_vertex(v[0], v[1], v[2]) ? Status() : builder_.too_many();
  }

  Status face() {
    corners_.clear();
    while (!next_on_line() && in_.peek() != '#') {
      std::int64_t index = 0;
      if (!in_.digits(index) || index == 0) return bad("a face has a corner that is no index");
      // A negative index counts back from the latest vertex.
      auto count = static_cast<std::int64_t>(builder_.mesh().vertices.size());
      if (index < -count) return bad("a face counts back beyond the first vertex");
      corners_.push_back(index > 0 ? index - 1 : count + index);
      // Texture and normal indices follow after slashes.
      if (in_.peek() == '/') in_.word();
      if (!in_.at_line_end() && !is_blank(in_.peek())) {
        return bad("a face has a corner that is no index");
      }
    }
    if (corners_.size() < 3) {
      // Exporters write edges as faces of two corners.
      if (corners_.empty()) return bad("a face has no corners");
      builder_.skip_element();
      return {};
    }
    return builder_.add_polygon(corners_) ? Status() : builder_.too_many();
  }

  TextCursor in_;
  MeshBuilder& builder_;
  std::vector<std::int64_t> corners_;
};

}  // namespace

Status read_obj(std::string_view text, MeshBuilder& builder) {
  return ObjReader(text, builder).read();
}

}  // namespace millrace::detail
