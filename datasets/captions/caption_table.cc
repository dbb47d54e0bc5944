#include "caption_table.h"

#include <millrace/datasets/arrow/arrow_dataset.h>
#include <millrace/datasets/listing/file_bytes.h>
#include <millrace/datasets/listing/file_list.h>
#include <millrace/datasets/listing/printable.h>
#include <millrace/decoders/text/text.h>

#include <algorithm>
#include <string_view>

#include <nlohmann/json.hpp>

namespace millrace::detail {

namespace {

using nlohmann::json;

class Table {
 public:
  Table(const std::filesystem::path& path, const std::string& path_column,
        const std::string& caption_column)
      : path_(path), path_column_(path_column), caption_column_(caption_column) {
    FileBytes file;
    Status status = file.read(path);
    if (status.ok()) status = decode_text(file.bytes(), text_);
    if (!status.ok()) throw status.error().at(printable(path)).kind(ErrorKind::usage);
  }

  std::vector<CaptionRow> rows() {
    return has_extension(path_.filename().native(), {"jsonl", "ndjson", "json"}) ? json_rows()
                                                                                 : csv_rows();
  }

 private:
  [[noreturn]] void fail(std::int64_t line, const std::string& reason) const {
    throw Error("line " + std::to_string(line) + ": " + reason)
        .at(printable(path_))
        .stage("table")
        .kind(ErrorKind::usage);
  }

  std::vector<CaptionRow> json_rows() const {
    std::vector<CaptionRow> rows;
    std::int64_t line = 0;
    for (std::string_view rest = text_; !rest.empty();) {
      std::string_view one = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(one.size() + 1, rest.size()));
      ++line;
      if (one.find_first_not_of(" \t") == std::string_view::npos) continue;
      json object = json::parse(one, nullptr, false);
      if (object.is_discarded() || !object.is_object()) fail(line, "not a JSON object");
      auto column = [&](const std::string& name) {
        if (!object.contains(name)) fail(line, "there is no \"" + name + "\"");
        if (!object[name].is_string()) fail(line, "\"" + name + "\" is not a string");
        return object[name].get<std::string>();
      };
      rows.push_back({column(path_column_), column(caption_column_), line});
    }
    return rows;
  }

  // Reads the next record; false at the end of the table.
  bool next_record(std::vector<std::string>& cells) {
    cells.clear();
    if (at_ >= text_.size()) return false;
    record_line_ = line_;
    while (true) {
      std::string& cell = cells.emplace_back();
      if (at_ < text_.size() && text_[at_] == '"') {
        read_quoted(cell);
      } else {
        while (at_ < text_.size() && text_[at_] != ',' && text_[at_] != '\n') cell += text_[at_++];
      }
      if (at_ >= text_.size()) return true;
      char end = text_[at_++];
      if (end == ',') continue;
      if (end != '\n') fail(line_, "something follows a closing quote");
      ++line_;
      return true;
    }
  }

  void read_quoted(std::string& cell) {
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == '\n') ++line_;
      if (text_[at_] != '"') {
        cell += text_[at_];
      } else if (at_ + 1 < text_.size() && text_[at_ + 1] == '"') {
        cell += text_[at_++];
      } else {
        ++at_;
        return;
      }
    }
    fail(record_line_, "a quote is opened and never closed");
  }

  std::vector<CaptionRow> csv_rows() {
    std::vector<std::string> cells;
    if (!next_record(cells)) fail(1, "the table is empty");
    auto column = [&](const std::string& name) {
      auto found = std::ranges::find(cells, name);
      if (found == cells.end()) {
        fail(1, "there is no column \"" + name + "\" among those it names");
      }
      if (std::ranges::count(cells, name) > 1) fail(1, "the column \"" + name + "\" occurs twice");
      return static_cast<std::size_t>(found - cells.begin());
    };
    const std::size_t path = column(path_column_), caption = column(caption_column_);
    const std::size_t columns = cells.size();
    std::vector<CaptionRow> rows;
    while (next_record(cells)) {
      if (cells.size() == 1 && cells[0].empty()) continue;  // an empty line
      if (cells.size() != columns) {
        fail(record_line_, "it has " + std::to_string(cells.size()) +
                               " cells, but the first line " + std::to_string(columns));
      }
      rows.push_back({cells[path], cells[caption], record_line_});
    }
    return rows;
  }

  const std::filesystem::path& path_;
  const std::string &path_column_, &caption_column_;
  std::string text_;
  std::size_t at_ = 0;
  std::int64_t line_ = 1, record_line_ = 1;
};

std::vector<CaptionRow> arrow_rows(const std::filesystem::path& table,
                                   const std::string& path_column,
                                   const std::string& caption_column) {
  const ArrowDataset rows(table, {.columns = {path_column, caption_column}});
  for (const std::string& name : {path_column, caption_column}) {
    if (rows.schema()[rows.schema().find(name)].text) continue;
    throw Error("the column \"" + name + "\" holds no texts")
        .at(printable(table))
        .stage("table")
        .kind(ErrorKind::usage);
  }
  std::vector<CaptionRow> all;
  Sample row(rows.schema());
  for (std::int64_t i = 0; i < rows.size(); ++i) {
    row.restart();
    Status status = rows.load(i, {.index = i}, row);
    if (!status.ok()) throw status.error().at(printable(table)).kind(ErrorKind::usage);
    all.push_back(
        {std::string(row.text(path_column)), std::string(row.text(caption_column)), i + 1});
  }
  return all;
}

}  // namespace

std::vector<CaptionRow> read_caption_table(const std::filesystem::path& table,
                                           const std::string& path_column,
                                           const std::string& caption_column) {
  if (has_extension(table.filename().native(), {"arrow", "feather"})) {
    return arrow_rows(table, path_column, caption_column);
  }
  return Table(table, path_column, caption_column).rows();
}

}  // namespace millrace::detail
