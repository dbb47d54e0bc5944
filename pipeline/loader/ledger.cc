#include <millrace/pipeline/base/error.h>
#include <millrace/pipeline/base/log.h>
#include <millrace/pipeline/loader/ledger.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <mutex>
#include <utility>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace millrace {

namespace {

using nlohmann::json;

// File names need not be UTF-8, but JSON must be: other bytes are written as \xNN, so that
// different names stay different.
std::string printable(const std::string& text) {
  try {
    (void)json(text).dump();
    return text;
  } catch (const json::type_error&) {
    std::string shown;
    for (unsigned char c : text) {
      if (c < 0x80) {
        shown += static_cast<char>(c);
      } else {
        constexpr char digits[] = "0123456789abcdef";
        shown += {'\\', 'x', digits[c >> 4], digits[c & 15]};
      }
    }
    return shown;
  }
}

std::string to_line(const BadSample& s) {
  json record{{"source", s.source}, {"stage", s.stage}, {"reason", s.reason},
              {"index", s.index},   {"epoch", s.epoch}, {"position", s.position}};
  if (s.transient) record["transient"] = true;
  return record.dump() + "\n";
}

BadSample from_line(const std::string& line) {
  json record = json::parse(line);
  return {.source = record.at("source"),
          .stage = record.at("stage"),
          .reason = record.at("reason"),
          .index = record.at("index"),
          .epoch = record.at("epoch"),
          .position = record.at("position"),
          .transient = record.value("transient", false)};
}

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& doing) {
  throw Error("cannot " + doing + " (" + std::strerror(errno) + ")")
      .at(path.string())
      .stage("ledger")
      .kind(ErrorKind::usage);
}

}  // namespace

Ledger::Ledger(std::filesystem::path path, bool resume) : path_(std::move(path)) {
  if (path_.empty()) return;
  namespace fs = std::filesystem;
  fs::path folder = path_.has_parent_path() ? path_.parent_path() : fs::path(".");
  std::error_code ignored;
  fs::create_directories(folder, ignored);
  if (resume) {
    // errors.jsonl, and errors.rank1.jsonl, errors.rank2.jsonl, ... of the other ranks.
    std::string stem = path_.stem().string();
    stem = stem.substr(0, stem.rfind(".rank"));
    for (const auto& entry : fs::directory_iterator(folder, ignored)) {
      std::string name = entry.path().filename().string();
      bool sibling =
          name == stem + path_.extension().string() ||
          (name.starts_with(stem + ".rank") && entry.path().extension() == path_.extension());
      if (sibling) read(entry.path(), entry.path().filename() == path_.filename());
    }
  } else if (fs::exists(path_, ignored)) {
    fs::path previous = path_;
    previous += ".previous";
    fs::rename(path_, previous, ignored);
  }
  file_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file_ < 0) fail(path_, "open the ledger for writing");
}

Ledger::~Ledger() {
  if (file_ >= 0) ::close(file_);
}

// A line is written with one call, so only the last line can be incomplete after a kill. It is cut
// off; its sample will fail and be recorded again.
void Ledger::read(const std::filesystem::path& file, bool own) {
  std::ifstream in(file, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  std::size_t begin = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
    std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line.empty()) continue;
    try {
      remember(from_line(line));
    } catch (const json::exception& error) {
      log(LogLevel::warning,
          file.string() + ": a line is not a ledger record and is ignored (" + error.what() + ")");
    }
  }
  if (own && begin < text.size()) std::filesystem::resize_file(file, begin);
}

bool Ledger::remember(BadSample sample) {
  std::unique_lock lock(mutex_);
  if (!sources_.insert(sample.source).second) return false;
  if (!sample.transient && sample.index >= 0) indices_.insert(sample.index);
  if (sample.index >= 0) bad_samples_.fetch_add(1, std::memory_order_release);
  records_.push_back(std::move(sample));
  count_.store(static_cast<std::int64_t>(records_.size()), std::memory_order_release);
  return true;
}

bool Ledger::add(BadSample sample) {
  sample.source = printable(sample.source);
  sample.stage = printable(sample.stage);
  sample.reason = printable(sample.reason);
  std::string line = to_line(sample);
  if (!remember(std::move(sample))) return false;
  if (file_ >= 0) {
    ssize_t written = ::write(file_, line.data(), line.size());
    if (written != static_cast<ssize_t>(line.size())) fail(path_, "write to the ledger");
  }
  return true;
}

bool Ledger::knows(std::int64_t index) const {
  if (size() == 0) return false;  // a run without bad samples takes no lock
  std::shared_lock lock(mutex_);
  return indices_.contains(index);
}

std::optional<BadSample> Ledger::find(std::int64_t index) const {
  std::shared_lock lock(mutex_);
  auto found = std::ranges::find(records_, index, &BadSample::index);
  return found == records_.end() ? std::nullopt : std::optional(*found);
}

std::vector<BadSample> Ledger::records() const {
  std::shared_lock lock(mutex_);
  return records_;
}

}  // namespace millrace
