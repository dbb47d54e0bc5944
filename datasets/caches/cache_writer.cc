#include "cache_description.h"
#include "cache_plan.h"
#include "cache_writer_state.h"
#include "shard_file.h"

#include <millrace/datasets/caches/cache_writer.h>
#include <millrace/pipeline/base/durable_file.h>
#include <millrace/pipeline/base/error.h>
#include <millrace/pipeline/base/log.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace millrace {

using namespace detail;

namespace {

namespace fs = std::filesystem;

std::string read_whole(const fs::path& path) {
  MappedFile file(path);
  return {reinterpret_cast<const char*>(file.bytes().data()), file.size()};
}

// Drops the file from the page cache: it is not read again.
void forget_cached(const fs::path& path) {
  int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  (void)::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
  ::close(file);
}

std::string in_megabytes(std::uint64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f MB", static_cast<double>(bytes) / 1e6);
  return text;
}

}  // namespace

fs::path CacheWriter::State::shard_path(std::int64_t shard) const {
  char name[32];
  std::snprintf(name, sizeof name, "shard-%06lld", static_cast<long long>(shard));
  return folder / name;
}

// Retries, because another process that has not yet seen the finished cache may create a file in
// the folder meanwhile.
void CacheWriter::State::remove_folder() const {
  std::error_code error;
  for (int attempt = 0; attempt < 10; ++attempt) {
    fs::remove_all(folder, error);
    if (!error) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1 << attempt));
  }
  log(LogLevel::warning, folder.string() + ": cannot be removed (" + error.message() + ")");
}

void CacheWriter::State::remove_old() const {
  bool others = false;
  try {
    others = fs::exists(out) && !read_cache_info(out).described;
  } catch (const Error&) {
    // Damaged. Millrace wrote it if the description or the folder of shards exists.
    others = !fs::exists(description_path(out)) && !fs::exists(folder) &&
             format_of(out) != CacheFormat::arrow;
  }
  if (others) {
    throw Error("the file was not written by Millrace and is not overwritten")
        .at(out.string())
        .kind(ErrorKind::usage)
        .hint("Remove it, or choose another name");
  }
  fs::remove(out);
  fs::remove(description_path(out));
  fs::remove(sources_file_of(out));
  fs::remove_all(folder);
}

void CacheWriter::State::refuse_if_other(const fs::path& where, const CacheInfo& found) const {
  std::string different = differences(plan_of(found), plan_of(description.info));
  if (different.empty()) return;
  throw Error("there is a cache that was made with other options: " + different)
      .at(where.string())
      .kind(ErrorKind::usage)
      .hint("Choose another name, use the same options to resume, or start again with --fresh");
}

void CacheWriter::State::look_at_finished() {
  if (!fs::exists(out)) return;
  CacheInfo found = read_cache_info(out);
  if (!found.described) {
    throw Error("the file exists already and was not written by Millrace")
        .at(out.string())
        .kind(ErrorKind::usage)
        .hint("Remove it, or choose another name");
  }
  refuse_if_other(out, found);
  complete = true;
  remove_folder();  // left over if a crash came after the last rename
}

void CacheWriter::State::open_folder() {
  std::error_code error;
  fs::create_directory(folder, error);
  if (error) {
    throw Error("cannot create the folder (" + error.message() + ")")
        .at(folder.string())
        .kind(ErrorKind::usage);
  }
  FolderLock lock(folder / "plan.lock");
  if (!fs::exists(plan_path())) {
    DurableFile file(folder, plan_path());
    file.write(seal_description(description));
    file.commit();
    sync_folder(folder.parent_path());
  }
  refuse_if_other(folder, open_description(read_whole(plan_path()), plan_path()).info);
  sweep_temporaries(folder);
}

void CacheWriter::State::check_room() const {
  std::int64_t row = row_bytes(description.info.schema);
  if (row < 0 || description.info.compression != "none") return;
  std::uint64_t there = 0;
  for (std::int64_t i = 0; i < shards(); ++i) {
    if (auto tail = read_tail(shard_path(i), plan, i)) there += tail->payload_bytes;
  }
  // Every row is stored twice: in its shard and in the joined file.
  auto whole =
      static_cast<std::uint64_t>(row) * static_cast<std::uint64_t>(description.info.sources);
  std::uint64_t needed = 2 * whole - std::min(there, 2 * whole), free = free_bytes(folder);
  if (needed <= free) return;
  throw Error("not enough room: " + in_megabytes(needed) + " are needed while it is made (" +
              in_megabytes(whole) + " in the end), and " + in_megabytes(free) + " are free")
      .at(out.string())
      .kind(ErrorKind::usage)
      .hint("Make room, or choose another disk");
}

CacheWriter::CacheWriter(fs::path out, CachePlan plan, CacheOptions options)
    : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.out = std::move(out);
  s.folder = s.out.string() + ".parts";
  s.description.info = describe_plan(s.out, plan, options);
  std::string identity;
  for (const auto& [name, value] : plan_of(s.description.info)) {
    identity.append(name).append("\n").append(value).append("\n");
  }
  s.plan = checksum_of(identity);
  if (options.fresh) s.remove_old();
  s.look_at_finished();
  if (s.complete) return;
  try {
    s.open_folder();
    s.check_room();
  } catch (const Error&) {
    s.look_at_finished();  // another process may have joined and removed the folder meanwhile
    if (!s.complete) throw;
  }
}
CacheWriter::~CacheWriter() = default;
CacheWriter::CacheWriter(CacheWriter&&) noexcept = default;

const fs::path& CacheWriter::path() const {
  return state_->out;
}
bool CacheWriter::complete() const {
  return state_->complete;
}
std::int64_t CacheWriter::shards() const {
  return state_->shards();
}
std::int64_t CacheWriter::first(std::int64_t shard) const {
  const CacheInfo& info = state_->description.info;
  return std::min(shard * info.shard_rows, info.sources);
}
bool CacheWriter::done(std::int64_t shard) const {
  return state_->complete ||
         read_tail(state_->shard_path(shard), state_->plan, shard).has_value() ||
         fs::exists(state_->out);  // another process joined after this writer was made
}
std::vector<std::int64_t> CacheWriter::missing() const {
  std::vector<std::int64_t> undone;
  for (std::int64_t shard = 0; shard < shards(); ++shard) {
    if (!done(shard)) undone.push_back(shard);
  }
  return undone;
}

void CacheWriter::join_ahead() {
  State& s = *state_;
  const CacheInfo& info = s.description.info;
  if (s.complete || !s.may_be_ahead || info.format == CacheFormat::arrow) return;
  try {
    for (std::int64_t next = s.ahead ? static_cast<std::int64_t>(s.ahead->added()) : 0;
         next < shards() && fs::exists(s.shard_path(next)); ++next) {
      if (!s.ahead) s.ahead = std::make_unique<DenseJoiner>(info, info.sources, s.folder, s.out);
      s.ahead->add(s.shard_path(next), s.plan);
      forget_cached(s.shard_path(next));
    }
  } catch (const Error&) {
    // The disk is full or a shard is damaged: join() reports it, and needs the disk space.
    s.ahead.reset();
    s.may_be_ahead = false;
  }
}

CacheInfo CacheWriter::join() {
  State& s = *state_;
  if (s.complete) return read_cache_info(s.out);
  // Another process may have joined and removed the folder meanwhile.
  auto finished_by_another = [&] {
    if (!fs::exists(s.out)) return false;
    s.refuse_if_other(s.out, read_cache_info(s.out));
    s.remove_folder();  // this process may have created it again
    return s.complete = true;
  };
  if (finished_by_another()) return read_cache_info(s.out);
  std::optional<FolderLock> lock;
  try {
    lock.emplace(s.folder / "join.lock");
  } catch (const Error&) {
    if (!fs::exists(s.out)) throw;
  }
  if (finished_by_another()) return read_cache_info(s.out);
  CacheDescription description = s.description;
  JoinedShards joined{.paths = {}, .plan = s.plan};
  std::int64_t undone = 0;
  for (std::int64_t i = 0; i < shards(); ++i) {
    auto tail = read_tail(s.shard_path(i), s.plan, i);
    undone += tail ? 0 : 1;
    if (tail) description.info.rows += static_cast<std::int64_t>(tail->rows);
    joined.paths.push_back(s.shard_path(i));
  }
  require_cache(undone == 0, s.out.string() + ": " + std::to_string(undone) + " of " +
                                 std::to_string(shards()) + " shards are not finished");
  try {
    if (description.info.format == CacheFormat::arrow) {
      join_arrow(description, joined, s.folder, s.out);
    } else {
      join_dense(description, joined, s.folder, s.out, std::move(s.ahead));
    }
  } catch (Error& error) {
    if (std::ranges::find(joined.paths, fs::path(error.source())) != joined.paths.end()) {
      fs::remove(error.source());
      error.hint("The shard was removed: run the same command again to write it again");
    }
    throw;
  }
  s.complete = true;
  s.remove_folder();
  return description.info;
}

}  // namespace millrace
