#include "cache_description.h"
#include "shard_file.h"

#include <millrace/datasets/arrays/dense_cache.h>
#include <millrace/datasets/caches/cache_writer.h>
#include <millrace/datasets/listing/printable.h>
#include <millrace/decoders/text/text.h>
#include <millrace/pipeline/base/durable_file.h>
#include <millrace/pipeline/base/error.h>
#include <millrace/pipeline/base/log.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace millrace {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t shard_target_bytes = 16 << 20, most_shards = 1 << 16;

void require(bool condition, const std::string& problem, const std::string& hint = "") {
  if (!condition) throw Error(problem).stage("cache").kind(ErrorKind::usage).hint(hint);
}

std::int64_t choose_shard_rows(const CachePlan& plan, const CacheOptions& options) {
  require(options.shard_rows >= 0, "shard_rows must not be negative");
  if (options.shard_rows > 0) return options.shard_rows;
  std::int64_t bytes = row_bytes(plan.schema), rows = 1024;
  if (bytes > 0) {
    auto fitting = static_cast<std::uint64_t>(
        std::clamp<std::int64_t>(shard_target_bytes / bytes, 1, 1 << 16));
    rows = static_cast<std::int64_t>(std::bit_floor(fitting));
  }
  while (plan.sources / rows > most_shards) rows *= 2;
  return rows;
}

void check_schema(const CacheInfo& info) {
  require(info.schema.size() > 0, "the schema has no fields");
  if (info.format != CacheFormat::arrow) {
    require(info.schema.size() == 1 && info.schema[0].is_fixed(),
            std::string(name_of(info.format)) +
                " holds one field of fixed shape, but there are: " + to_string(info.schema),
            "Write Arrow, or keep one field of fixed shape");
    require(info.compression == "none",
            std::string(name_of(info.format)) + " is never compressed; write Arrow");
    require(info.schema[0].shape.rank() < Shape::max_rank, "the field has too many axes");
  }
  for (const std::string& name : info.binary) {
    const Field& field = info.schema[info.schema.at(name)];
    require(field.dtype == DType::uint8 && field.shape == Shape{-1} && !field.text,
            "field '" + name + "' is to hold encoded media, and must be uint8 [-1]");
  }
}

CacheInfo describe(const fs::path& out, const CachePlan& plan, const CacheOptions& options) {
  CacheInfo info;
  info.described = true;
  info.format = options.format ? *options.format : format_of(out);
  info.schema = plan.schema;
  require(options.zstd_level >= 0 && options.zstd_level <= 22, "zstd has the levels 1 to 22");
  if (options.zstd_level > 0) info.compression = "zstd:" + std::to_string(options.zstd_level);
  info.version = MILLRACE_VERSION;
  info.sources = plan.sources;
  require(plan.sources >= 0, "there cannot be " + std::to_string(plan.sources) + " sources");
  info.shard_rows = choose_shard_rows(plan, options);
  for (const auto& [name, value] : plan.options)
    info.options[printable(std::string_view(name))] = printable(std::string_view(value));
  info.fingerprint = printable(std::string_view(plan.fingerprint));
  info.binary = options.binary;
  check_schema(info);
  return info;
}

std::string read_whole(const fs::path& path) {
  MappedFile file(path);
  return {reinterpret_cast<const char*>(file.bytes().data()), file.size()};
}

// The file will hardly be read again: its memory is given back now, and not when it is removed.
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

struct CacheWriter::State {
  fs::path out, folder;
  CacheDescription description;  // as planned: no rows yet
  std::uint64_t plan = 0;        // the checksum of the plan, kept in every shard
  bool complete = false;
  std::unique_ptr<DenseJoiner> ahead;  // what join_ahead() has of the final file
  bool may_be_ahead = true;

  fs::path shard_path(std::int64_t shard) const {
    char name[32];
    std::snprintf(name, sizeof name, "shard-%06lld", static_cast<long long>(shard));
    return folder / name;
  }
  fs::path plan_path() const { return folder / "plan.json"; }
  std::int64_t shards() const {
    const CacheInfo& info = description.info;
    return (info.sources + info.shard_rows - 1) / info.shard_rows;
  }

  void remove_old() const;
  void refuse_if_other(const fs::path& where, const CacheInfo& found) const;
  void look_at_finished();
  void open_folder();
  void check_room() const;
  void remove_folder() const;
};

// Another process that has not yet seen the finished file may just be making a file in it.
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
    // Damaged. It was ours if what stands beside it is.
    others = !fs::exists(side_file_of(out)) && !fs::exists(folder) &&
             format_of(out) != CacheFormat::arrow;
  }
  if (others) {
    throw Error("the file was not written by Millrace and is not overwritten")
        .at(out.string())
        .kind(ErrorKind::usage)
        .hint("Remove it, or choose another name");
  }
  fs::remove(out);
  fs::remove(side_file_of(out));
  fs::remove(sources_file_of(out));
  fs::remove_all(folder);
}

void CacheWriter::State::refuse_if_other(const fs::path& where, const CacheInfo& found) const {
  std::string different = differences(plan_of(found), plan_of(description.info));
  if (different.empty()) return;
  throw Error("there is a cache that was made otherwise: " + different)
      .at(where.string())
      .kind(ErrorKind::usage)
      .hint("Choose another name, use the same options to go on, or begin anew (--fresh)");
}

void CacheWriter::State::look_at_finished() {
  if (!fs::exists(out)) return;
  CacheInfo found = read_cache_info(out);
  if (!found.described) {
    throw Error("the file is there already and was not written by Millrace")
        .at(out.string())
        .kind(ErrorKind::usage)
        .hint("Remove it, or choose another name");
  }
  refuse_if_other(out, found);
  complete = true;
  remove_folder();  // a crash may have come between the last rename and this
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
    file.write(seal_side_file(description));
    file.commit();
    sync_folder(folder.parent_path());
  }
  refuse_if_other(folder, open_side_file(read_whole(plan_path()), plan_path()).info);
  sweep_temporaries(folder);
}

void CacheWriter::State::check_room() const {
  std::int64_t row = row_bytes(description.info.schema);
  if (row < 0 || description.info.compression != "none") return;
  std::uint64_t there = 0;
  for (std::int64_t i = 0; i < shards(); ++i) {
    if (auto tail = read_tail(shard_path(i), plan, i)) there += tail->payload_bytes;
  }
  // Every row twice: in its shard, and in the file that is joined of them.
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
  s.description.info = describe(s.out, plan, options);
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
    s.look_at_finished();  // another process may have joined and removed the folder just now
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
         fs::exists(state_->out);  // it was not when this writer began: another process has joined
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
    // No room, or a damaged shard: join() will tell, and needs the room itself.
    s.ahead.reset();
    s.may_be_ahead = false;
  }
}

CacheInfo CacheWriter::join() {
  State& s = *state_;
  if (s.complete) return read_cache_info(s.out);
  // Another process may have joined, and removed the folder, since this one last looked.
  auto finished_by_another = [&] {
    if (!fs::exists(s.out)) return false;
    s.refuse_if_other(s.out, read_cache_info(s.out));
    s.remove_folder();  // which this process may have made again
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
  require(undone == 0, s.out.string() + ": " + std::to_string(undone) + " of " +
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
      error.hint("The shard was removed: run the same again to make it anew");
    }
    throw;
  }
  s.complete = true;
  s.remove_folder();
  return description.info;
}

struct ShardWriter::State {
  CacheInfo plan;
  std::int64_t shard, next, end;
  fs::path out, final_name;
  DurableFile file;
  Checksum checksum;
  ShardTail tail{};
  std::unique_ptr<Payload> payload;
  std::string lines;

  State(const CacheWriter::State& writer, std::int64_t which, std::int64_t begin,
        std::int64_t finish)
      : plan(writer.description.info),
        shard(which),
        next(begin),
        end(finish),
        out(writer.out),
        final_name(writer.shard_path(which)),
        file(writer.folder, final_name) {
    tail.plan = writer.plan;
    tail.shard = static_cast<std::uint64_t>(which);
    auto write = [this](std::span<const std::byte> bytes) {
      checksum.add(bytes);
      file.write(bytes);
      tail.payload_bytes += bytes.size();
    };
    payload = plan.format == CacheFormat::arrow ? arrow_payload(plan, write) : dense_payload(write);
  }

  void expect(std::int64_t index) {
    require(index == next && index < end,
            "shard " + std::to_string(shard) + " expects source " + std::to_string(next) +
                (next < end ? "" : " no more") + ", but was given " + std::to_string(index));
    ++next;
  }
  void check(const CacheSource& source, std::span<const Array> row) const;
};

void ShardWriter::State::check(const CacheSource& source, std::span<const Array> row) const {
  auto wrong = [&](const Field& field, const std::string& problem) {
    throw Error("field '" + field.name + "' " + problem).at(source.name).stage("cache");
  };
  require(std::ssize(row) == plan.schema.size(), "a row has " + std::to_string(row.size()) +
                                                     " fields, and the cache " +
                                                     std::to_string(plan.schema.size()));
  for (int i = 0; i < plan.schema.size(); ++i) {
    const Field& field = plan.schema[i];
    const Array& value = row[static_cast<std::size_t>(i)];
    if (value.dtype() != field.dtype || !field.shape.admits(value.shape())) {
      wrong(field, "is " + std::string(name_of(field.dtype)) + " " + to_string(field.shape) +
                       ", but the row has " + to_string(value));
    }
    if (field.text) {
      std::string_view text(reinterpret_cast<const char*>(value.data()), value.bytes());
      if (first_invalid_utf8(text) != std::string_view::npos) wrong(field, "is not UTF-8");
    }
  }
}

ShardWriter::ShardWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
ShardWriter::~ShardWriter() = default;
ShardWriter::ShardWriter(ShardWriter&&) noexcept = default;

ShardWriter CacheWriter::begin(std::int64_t shard) {
  require(!state_->complete, state_->out.string() + ": the cache is finished already");
  require(shard >= 0 && shard < shards(),
          "there is no shard " + std::to_string(shard) + " of " + std::to_string(shards()));
  return ShardWriter(
      std::make_unique<ShardWriter::State>(*state_, shard, first(shard), first(shard + 1)));
}

void ShardWriter::append(std::int64_t index, const CacheSource& source,
                         std::span<const Array> row) {
  state_->check(source, row);
  state_->expect(index);
  state_->payload->append(source, row);
  ++state_->tail.rows;
  // An Arrow file has the sources as columns.
  if (state_->plan.format != CacheFormat::arrow) state_->lines += to_line(index, source, nullptr);
}

void ShardWriter::append(std::int64_t index, const CacheSource& source, const Sample& row) {
  std::vector<Array> values;
  for (const Field& field : row.schema()) values.push_back(row[field.name]);
  append(index, source, values);
}

void ShardWriter::fail(std::int64_t index, const CacheSource& source, const std::string& reason) {
  state_->expect(index);
  state_->lines += to_line(index, source, &reason);
}

std::uint64_t ShardWriter::bytes() const {
  return state_->file.size();
}

void ShardWriter::finish() {
  State& s = *state_;
  require(s.next == s.end, "shard " + std::to_string(s.shard) + " still misses " +
                               std::to_string(s.end - s.next) + " sources");
  s.payload->finish();
  s.file.write(s.lines);
  s.tail.lines_bytes = s.lines.size();
  s.tail.lines_xxh3 = checksum_of(s.lines);
  s.tail.payload_xxh3 = s.checksum.value();
  seal(s.tail);
  s.file.write(std::as_bytes(std::span(&s.tail, 1)));
  try {
    s.file.commit();
  } catch (const Error&) {
    // Another process made the same shard, and the cache was joined meanwhile: nothing is lost.
    if (!fs::exists(s.out)) throw;
  }
}

}  // namespace millrace
