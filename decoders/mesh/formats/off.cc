// Object File Format, ascii. Each vertex and each face has its own line. Normals, colours and
// texture coordinates after them are ignored.
#include <millrace/decoders/mesh/formats/text_cursor.h>
#include <millrace/decoders/mesh/mesh_builder.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::detail {

namespace {

class OffReader {
 public:
  OffReader(std::string_view text, MeshBuilder& builder) : in_(text), builder_(builder) {}

  Status read() {
    if (Status status = header(); !status.ok()) return status;
    for (std::int64_t i = 0; i < vertices_; ++i) {
      if (Status status = vertex(i); !status.ok()) return status;
    }
    for (std::int64_t i = 0; i < faces_; ++i) {
      if (Status status = face(i); !status.ok()) return status;
    }
    return {};
  }

 private:
  Status header() {
    next_line();
    // Some files have no space before the counts ("OFF490 518 0"), and some no keyword.
    TextCursor ahead = in_;
    std::string_view word = ahead.word();
    bool bare = std::all_of(word.begin(), word.end(), is_digit);
    std::string keyword;
    while (!bare && !in_.at_line_end() && !is_blank(in_.peek()) && keyword.size() < 8) {
      if (is_digit(in_.peek()) && keyword.ends_with("OFF")) break;
      keyword += in_.peek();
      in_.advance();
    }
    if (!keyword.empty() && keyword != "OFF" && keyword != "COFF" && keyword != "NOFF" &&
        keyword != "CNOFF" && keyword != "STOFF" && keyword != "STCOFF" && keyword != "STNOFF" &&
        keyword != "STCNOFF") {
      return builder_.error("a kind of OFF that is not read (only three-dimensional ascii is)");
    }
    next_line();
    if (in_.peek() == 'B') return builder_.error("binary OFF is not read");
    if (!in_.integer(vertices_) || !in_.integer(faces_) || vertices_ < 0 || faces_ < 0) {
      return builder_.error("its header has no counts of vertices and faces");
    }
    in_.skip_line();  // the count of edges is often wrong and never needed
    // "0 0 0\n" and "3 0 1 2\n" are the shortest lines; the last may lack its line end.
    Status status =
        builder_.expect_vertices(static_cast<std::uint64_t>(vertices_), 6, in_.left() + 1);
    if (!status.ok()) return status;
    status = builder_.expect_faces(static_cast<std::uint64_t>(faces_), 4, in_.left() + 1);
    if (!status.ok()) return status;
    builder_.reserve_vertices(static_cast<std::uint64_t>(vertices_));
    builder_.reserve_faces(static_cast<std::uint64_t>(faces_));
    return {};
  }

  void next_line() {
    for (in_.skip_spaces(); in_.peek() == '#'; in_.skip_spaces()) in_.skip_line();
  }

  Status vertex(std::int64_t number) {
    next_line();
    double v[3];
    for (double& coordinate : v) {
      if (in_.number(coordinate)) continue;
      return builder_.error(
          (in_.done() ? "truncated: ends within vertex " : "three numbers are needed for vertex ") +
          std::to_string(number));
    }
    in_.skip_line();
    return builder_.add_vertex(v[0], v[1], v[2]) ? Status() : builder_.too_many();
  }

  Status face(std::int64_t number) {
    next_line();
    std::int64_t count = 0;
    bool good =
        in_.integer(count) && count >= 1 && static_cast<std::uint64_t>(count) <= in_.left() / 2;
    corners_.clear();
    for (std::int64_t k = 0; good && k < count; ++k) {
      std::int64_t index = 0;
      good = in_.integer(index);
      corners_.push_back(index);
    }
    if (!good) {
      return builder_.error(
          (in_.done() ? "truncated: ends within face " : "cannot read the corners of face ") +
          std::to_string(number));
    }
    in_.skip_line();
    if (count < 3) {
      builder_.skip_element();
      return {};
    }
    return builder_.add_polygon(corners_) ? Status() : builder_.too_many();
  }

  TextCursor in_;
  MeshBuilder& builder_;
  std::int64_t vertices_ = 0, faces_ = 0;
  std::vector<std::int64_t> corners_;
};

}  // namespace

Status read_off(std::string_view text, MeshBuilder& builder) {
  return OffReader(text, builder).read();
}

}  // namespace millrace::detail
