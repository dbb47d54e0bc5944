#include <millrace/pipeline/base/durable_file.h>
#include <millrace/pipeline/base/error.h>
#include <millrace/pipeline/base/log.h>
#include <millrace/training/checkpoint/checkpoint.h>
#include <millrace/training/loop/run_folder.h>

#include <algorithm>
#include <charconv>

#include <c10/util/StringUtil.h>

namespace millrace {

namespace fs = std::filesystem;

namespace {

constexpr const char* marker = ".millrace-run";

// The number in <stem>.<number>.pt
std::optional<std::int64_t> number_of(const std::string& name, const std::string& stem) {
  constexpr std::string_view tail = ".pt";
  const std::string head = stem + ".";
  if (!name.starts_with(head) || !name.ends_with(tail) ||
      name.size() <= head.size() + tail.size()) {
    return std::nullopt;
  }
  std::int64_t number = 0;
  const char* end = name.data() + name.size() - tail.size();
  const auto [at, error] = std::from_chars(name.data() + head.size(), end, number);
  return error == std::errc() && at == end ? std::optional(number) : std::nullopt;
}

// A temporary file that a killed run left behind; see DurableFile.
bool is_half_written(const std::string& name) {
  return name.ends_with(".tmp");
}

void create_folder(const fs::path& folder) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (!failed && fs::is_directory(folder)) return;
  throw Error(c10::str("cannot create the folder (",
                       failed ? failed.message() : "a file has this name", ")"))
      .at(folder.string())
      .kind(ErrorKind::usage);
}

// Refuses, clears or accepts a folder that is not empty. `flag` is the option that names it.
void check_old_run(const fs::path& folder, OldRun old, const char* flag) {
  if (old == OldRun::join || !fs::is_directory(folder)) return;
  const auto entries = std::count_if(
      fs::directory_iterator(folder), fs::directory_iterator(),
      [](const auto& entry) { return !is_half_written(entry.path().filename().string()); });
  if (entries == 0) return;
  const bool ours = fs::exists(folder / marker);
  if (old == OldRun::refuse) {
    throw Error(
        c10::str("holds ", ours ? "an earlier run" : "other files", " (", entries, " entries)"))
        .at(folder.string())
        .hint(c10::str("Continue with --resume, delete it with --clear, or give another ", flag))
        .kind(ErrorKind::usage);
  }
  if (old == OldRun::clear) {
    if (!ours) {
      throw Error("holds files that no run of ours has written; it is not cleared")
          .at(folder.string())
          .kind(ErrorKind::usage);
    }
    for (const auto& entry : fs::directory_iterator(folder)) fs::remove_all(entry.path());
    return;
  }
  if (!ours) {
    throw Error("holds files that no run of ours has written; there is nothing to resume")
        .at(folder.string())
        .hint(c10::str("Give the ", flag, " of the run to resume, or leave --resume out"))
        .kind(ErrorKind::usage);
  }
  sweep_temporaries(folder);
}

}  // namespace

// Checks both folders before it creates either: one may be inside the other, and creating the inner
// one makes the outer one non-empty.
RunFolder::RunFolder(fs::path folder, OldRun old, fs::path checkpoints, std::string stem)
    : folder_(std::move(folder)),
      checkpoints_(checkpoints.empty() ? folder_ : std::move(checkpoints)),
      stem_(std::move(stem)) {
  check_old_run(folder_, old, "--results-folder");
  if (checkpoints_ != folder_) check_old_run(checkpoints_, old, "--checkpoints-folder");
  create_folder(folder_);
  create_folder(checkpoints_);
}

void RunFolder::write_config(const std::string& name, const std::string& text) const {
  for (const fs::path* folder : {&folder_, &checkpoints_}) {
    write_durably(*folder / marker,
                  "Results folder of a training run; --clear deletes its contents.\n");
  }
  write_durably(folder_ / name, text);
}

std::vector<std::pair<std::int64_t, fs::path>> RunFolder::checkpoints() const {
  std::vector<std::pair<std::int64_t, fs::path>> found;
  for (const auto& entry : fs::directory_iterator(checkpoints_)) {
    if (auto number = number_of(entry.path().filename().string(), stem_)) {
      found.emplace_back(*number, entry.path());
    }
  }
  std::sort(found.rbegin(), found.rend());
  return found;
}

std::optional<std::pair<fs::path, Value>> RunFolder::newest() const {
  const auto all = checkpoints();
  for (const auto& [step, path] : all) {
    try {
      return std::pair(path, read_checkpoint(path));
    } catch (const Error& error) {
      log(LogLevel::warning, c10::str(error.what(), "; trying the previous checkpoint"));
    }
  }
  if (!all.empty()) {
    throw Error(c10::str("none of its ", all.size(), " checkpoints can be read"))
        .at(checkpoints_.string())
        .hint("Start again with --clear");
  }
  return std::nullopt;
}

void RunFolder::save(std::int64_t number, const Value& state, int keep) const {
  write_checkpoint(checkpoints_ / c10::str(stem_, ".", number, ".pt"), state);
  if (keep <= 0) return;
  const auto all = checkpoints();
  for (std::size_t i = static_cast<std::size_t>(keep); i < all.size(); ++i) {
    std::error_code ignored;
    fs::remove(all[i].second, ignored);
  }
}

}  // namespace millrace
