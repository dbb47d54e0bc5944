// One run: claims shards, loads their samples, writes them, and joins the shards at the end.
#include "tools/cli/progress.h"
#include "tools/cli/signals.h"
#include "tools/preprocess/shards/cache_rows.h"
#include "tools/preprocess/shards/shard_commit_queue.h"
#include "tools/preprocess/shards/shard_dataset.h"
#include "tools/preprocess/summary.h"

#include <millrace/pipeline/base/durable_file.h>
#include <millrace/pipeline/base/log.h>
#include <millrace/pipeline/loader/ledger.h>
#include <millrace/pipeline/loader/loader.h>

#include <charconv>
#include <fstream>
#include <optional>
#include <thread>

#include <fmt/format.h>
#include <unistd.h>

namespace millrace {

namespace {

namespace fs = std::filesystem;

// Parses "i/n"; nullopt if --shard is not given.
std::optional<std::pair<std::int64_t, std::int64_t>> parse_shard(const std::string& text) {
  if (text.empty()) return std::nullopt;
  const char* end = text.data() + text.size();
  std::int64_t part = -1, parts = 0;
  auto [slash, error] = std::from_chars(text.data(), end, part);
  bool ok = error == std::errc() && slash != end && *slash == '/';
  if (ok) ok = std::from_chars(slash + 1, end, parts).ptr == end;
  if (!ok || part < 0 || part >= parts) {
    throw Error("--shard takes i/n with i from 0 to n-1, but was given '" + text + "'")
        .kind(ErrorKind::usage);
  }
  return std::pair(part, parts);
}

std::unique_ptr<Claims> make_claims(const RunOptions& options, const std::optional<Ranks>& ranks,
                                    const Targets& targets) {
  if (auto shard = parse_shard(options.shard)) return claim_part(shard->first, shard->second);
  if (!ranks) return claim_all();
  return claim_by_rank(*ranks, options.out.string() + ".claims",
                       [&targets] { return targets.missing().empty(); });
}

fs::path with_rank(const fs::path& path, const std::optional<Ranks>& ranks) {
  if (!ranks || ranks->rank == 0) return path;
  fs::path name = path.stem();
  name += fmt::format(".rank{}", ranks->rank);
  name += path.extension();
  return path.parent_path() / name;
}

fs::path ledger_path(const fs::path& cache) {
  return cache.string() + ".errors.jsonl";
}

class Run {
 public:
  Run(const Job& job, const RunOptions& options, std::shared_ptr<Pool> pool)
      : job_(job),
        options_(options),
        pool_(std::move(pool)),
        ranks_(options.shard.empty() ? ranks_from_environment() : std::nullopt),
        rows_(job, chosen_format(options)),
        targets_(job, options, rows_.schema(), false) {
    summary_.rank = ranks_ ? ranks_->rank : -1;
    summary_.threads = pool_->threads();
  }

  int run();

 private:
  void work(const Shards& shards);
  void write(const ShardDataset& shards, const Batch& batch);
  void begin_shard_of(const ShardDataset& shards, std::int64_t index);
  void record(const ShardDataset& shards, const BadSample& bad);
  bool stop_requested();
  void wait_for_others();
  int stopped();
  int finish();
  Progress::State state() const {
    return {
        .items = summary_.read_items, .bytes = summary_.read_bytes, .errors = summary_.failures};
  }

  const Job& job_;
  const RunOptions& options_;
  std::shared_ptr<Pool> pool_;
  std::optional<Ranks> ranks_;
  CacheRows rows_;
  Targets targets_;
  Summary summary_;
  std::unique_ptr<Claims> claims_;
  std::optional<Progress> progress_;
  std::optional<ShardCommitQueue> commits_;
  std::optional<ShardWriter> open_;
  const ShardDataset::Segment* open_segment_ = nullptr;
  std::optional<Ledger> live_ledger_;
  bool goes_on_ = false;  // in spite of a signal
  int loaders_ = 0;
};

// Only shards that are not on disk yet are lost: running the same command again continues.
int Run::run() {
  if (targets_.complete()) return finish();
  Signals::watch();
  claims_ = make_claims(options_, ranks_, targets_);
  Shards missing = targets_.missing();
  std::int64_t todo = 0;
  for (std::int64_t shard : missing) {
    auto [target, number] = targets_.find(shard);
    todo += static_cast<std::int64_t>(target->writer->range(number).size());
  }
  summary_.resumed = targets_.sources() - todo;
  if (summary_.resumed > 0) {
    log(LogLevel::info, fmt::format("going on: {} of {} {} are done", summary_.resumed,
                                    targets_.sources(), job_.what));
  }
  progress_.emplace(ProgressOptions{.what = job_.what,
                                    .total = targets_.sources(),
                                    .done = summary_.resumed,
                                    .quiet = options_.quiet});
  bool alone = !ranks_ && options_.shard.empty();
  commits_.emplace([this, alone] {
    for (Targets::Target& target : targets_.all()) {
      if (alone) target.writer->join_ahead();
    }
  });
  while (!missing.empty() && !stop_requested()) {
    Shards ours = claims_->take(missing);
    if (!ours.empty()) {
      work(ours);
    } else if (claims_->others_work()) {
      wait_for_others();
    } else {
      break;
    }
    commits_->wait();
    missing = targets_.missing();
  }
  commits_.reset();
  progress_.reset();
  if (stop_requested()) return stopped();
  if (!missing.empty()) {
    summary_.print(job_.what, {}, options_.json);
    log(LogLevel::info, fmt::format("{} of {} shards are left to others; whoever is last joins",
                                    missing.size(), targets_.shards()));
    return 0;
  }
  return finish();
}

bool Run::stop_requested() {
  if (Signals::received() == 0) return false;
  if (!goes_on_ && claims_->somebody_died()) {
    goes_on_ = true;
    log(LogLevel::warning,
        "told to stop because another rank died; finishing what is left as long as time is given");
  }
  return !goes_on_;
}

void Run::wait_for_others() {
  for (int i = 0; i < 5 && Signals::received() == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    progress_->update(state());
  }
  if (goes_on_) std::this_thread::sleep_for(std::chrono::milliseconds(100));
}

void Run::work(const Shards& shards) {
  auto data = std::make_shared<ShardDataset>(job_, targets_, shards);
  bool fail = options_.on_error == "fail";
  LoaderOptions loading{.batch_size = rows_.batch_size(data->size()),
                        .seed = options_.seed,
                        .prefetch = 8,  // one slow file must not delay the other files
                        .pool = pool_,
                        .errors = {.fail = fail, .drop = true, .max_fraction = 1},
                        .trace = !options_.trace.empty()};
  if (options_.max_errors >= 0) {
    loading.errors.max_count = std::max<std::int64_t>(options_.max_errors - summary_.failures, 0);
  }
  // Log the memory use once, not for every claim.
  if (loaders_ > 0) set_log_level(LogLevel::warning);
  Loader loader(data, loading);
  if (!options_.quiet) set_log_level(LogLevel::info);
  if (!options_.graph.empty() && loaders_ == 0) {
    std::ofstream out(options_.graph);
    if (!(out << loader.dump_graph())) throw Error("cannot write").at(options_.graph);
  }
  while (auto batch = loader.next()) {
    if (stop_requested()) break;
    write(*data, *batch);
    progress_->update(state());
  }
  if (open_ && !stop_requested()) commits_->commit(std::move(*open_));
  open_.reset();  // drops an incomplete shard
  open_segment_ = nullptr;
  summary_.add(loader.stats());
  if (!options_.trace.empty() && loaders_ == 0) {
    loader.write_trace(with_rank(options_.trace, ranks_));
  }
  ++loaders_;
}

// Merges rows and failures, both sorted by source, into the order of the sources.
void Run::write(const ShardDataset& shards, const Batch& batch) {
  rows_.take(batch);
  std::span<const std::int64_t> good = batch.indices();
  std::span<const BadSample> bad = batch.dropped();
  std::size_t g = 0, b = 0;
  while (g < good.size() || b < bad.size()) {
    bool is_good = b == bad.size() || (g < good.size() && good[g] < bad[b].index);
    std::int64_t index = is_good ? good[g] : bad[b].index;
    begin_shard_of(shards, index);
    CacheSource source = job_.source(shards.original(index));
    ++summary_.read_items;
    if (source.bytes > 0) summary_.read_bytes += source.bytes;
    if (is_good) {
      open_->append(shards.source(index), source, rows_.row(static_cast<std::int64_t>(g++)));
    } else {
      open_->fail(shards.source(index), source, bad[b].stage + ": " + bad[b].reason);
      record(shards, bad[b++]);
    }
  }
}

void Run::begin_shard_of(const ShardDataset& shards, std::int64_t index) {
  const ShardDataset::Segment* segment = &shards.segment(index);
  if (segment == open_segment_) return;
  if (open_) commits_->commit(std::move(*open_));
  open_.emplace(segment->target->writer->begin(segment->shard));
  open_segment_ = segment;
}

// During the run, failures are appended as they happen; the end writes the whole list.
void Run::record(const ShardDataset& shards, const BadSample& bad) {
  summary_.add_failure(bad.stage + ": " + bad.reason);
  if (!live_ledger_) {
    fs::path path = with_rank(ledger_path(shards.segment(bad.index).target->path), ranks_);
    std::error_code ignored;
    fs::remove(path, ignored);
    live_ledger_.emplace(path);
  }
  BadSample listed = bad;
  listed.index = shards.original(bad.index);
  listed.position = shards.source(bad.index);
  live_ledger_->add(std::move(listed));
}

int Run::stopped() {
  summary_.print(job_.what, {}, options_.json);
  std::size_t left = targets_.missing().size();
  log(LogLevel::warning,
      fmt::format("stopped by signal {}: {} of {} shards are on the disk; the same command goes on",
                  Signals::received(), targets_.shards() - static_cast<std::int64_t>(left),
                  targets_.shards()));
  return 128 + Signals::received();
}

// The ledger of the whole cache, over all processes and restarts. It also lists files that are no
// samples, such as a GIF without a text or a folder named like a picture.
void write_ledger(const fs::path& cache, const CacheInfo& info,
                  const std::vector<LeftOut>& left_out) {
  fs::path path = ledger_path(cache);
  fs::path beside = path.string() + fmt::format(".{}.new", getpid());
  std::error_code ignored;
  fs::remove(beside, ignored);
  bool any = info.failed > 0 || !left_out.empty();
  if (any) {
    Ledger ledger(beside);
    for_each_failure(cache, [&](const CacheFailure& failure) {
      std::size_t colon = failure.reason.find(": ");
      bool staged = colon != std::string::npos;
      ledger.add({.source = failure.source.name,
                  .stage = staged ? failure.reason.substr(0, colon) : "load",
                  .reason = staged ? failure.reason.substr(colon + 2) : failure.reason,
                  .index = failure.index,
                  .position = failure.index});
    });
    for (const LeftOut& left : left_out) {
      ledger.add({.source = left.source, .stage = "listing", .reason = left.reason, .index = -1});
    }
  }
  if (any) {
    fs::rename(beside, path, ignored);  // fails only if another rank has renamed it first
  } else {
    fs::remove(path, ignored);
  }
}

// Ledgers and lock files of all ranks, including dead ones.
void remove_leftovers(const fs::path& cache) {
  std::error_code ignored;
  fs::remove(cache.string() + ".claims", ignored);
  fs::path folder = cache.has_parent_path() ? cache.parent_path() : fs::path(".");
  std::string list = cache.filename().string() + ".errors.";
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    std::string name = entry.path().filename().string();
    bool ours = name.starts_with(list + "rank") ||
                (name.starts_with(list + "jsonl.") && name.ends_with(".new"));
    if (ours) fs::remove(entry.path(), ignored);
  }
}

int Run::finish() {
  std::vector<std::pair<std::string, CacheInfo>> made;
  std::int64_t rows = 0;
  bool was_complete = targets_.complete();
  live_ledger_.reset();
  for (Targets::Target& target : targets_.all()) {
    CacheInfo info = target.writer->join();
    rows += info.rows;
    bool first = &target == &targets_.all().front();
    write_ledger(target.path, info, first ? job_.data->left_out() : std::vector<LeftOut>{});
    remove_leftovers(target.path);
    made.emplace_back(target.path.string(), std::move(info));
  }
  if (was_complete) {
    log(LogLevel::info,
        "complete already, of the same files with the same options; --fresh makes it anew");
  }
  summary_.print(job_.what, made, options_.json);
  if (rows == 0) {
    throw Error(fmt::format("none of the {} {} could be used; see {}", targets_.sources(),
                            job_.what, ledger_path(targets_.all()[0].path).string()));
  }
  return 0;
}

// A second run of the same command waits for the first, so that two runs started by mistake neither
// do the work twice nor remove each other's shards.
void keep_others_out(std::optional<FolderLock>& sole, const std::filesystem::path& out) {
  const std::string file = out.string() + ".lock";
  auto on_wait = [&] {
    log(LogLevel::info, file + ": another run makes this cache; waiting for its end");
  };
  try {
    sole.emplace(file, on_wait, FolderLock::AtEnd::remove_file);
  } catch (const Error&) {
    // Without file locks both runs go on; the cache writer reports other problems of the folder.
  }
}

}  // namespace

int run_job(const Job& job, const RunOptions& options, const std::shared_ptr<Pool>& pool) {
  parse_shard(options.shard);  // checked before anything is written
  if (options.fresh && options.shard.empty() && ranks_from_environment()) {
    throw Error("--fresh by several ranks would remove what another has begun; remove " +
                options.out.string() + " and " + options.out.string() + ".parts instead")
        .kind(ErrorKind::usage);
  }
  if (options.dry_run) return dry_run(job, options);
  std::optional<FolderLock> sole;
  if (options.shard.empty() && !ranks_from_environment()) keep_others_out(sole, options.out);
  Run run(job, options, pool);
  try {
    return run.run();
  } catch (Error& error) {
    error.kind(ErrorKind::data);  // the command line was right, so this is exit code 1
    throw;
  }
}

}  // namespace millrace
