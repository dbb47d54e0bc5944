#include "cache_description.h"
#include "cache_plan.h"
#include "cache_writer_state.h"
#include "shard_file.h"

#include <millrace/datasets/caches/cache_writer.h>
#include <millrace/decoders/text/text.h>
#include <millrace/pipeline/base/durable_file.h>
#include <millrace/pipeline/base/error.h>

#include <utility>

namespace millrace {

using namespace detail;
namespace fs = std::filesystem;

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
    require_cache(index == next && index < end,
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
  require_cache(std::ssize(row) == plan.schema.size(), "a row has " + std::to_string(row.size()) +
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
  require_cache(!state_->complete, state_->out.string() + ": the cache is finished already");
  require_cache(shard >= 0 && shard < shards(),
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
  // An Arrow file stores the sources in columns.
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
  require_cache(s.next == s.end, "shard " + std::to_string(s.shard) + " still misses " +
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
    // If another process wrote the same shard and joined the cache meanwhile, nothing is lost.
    if (!fs::exists(s.out)) throw;
  }
}

}  // namespace millrace
