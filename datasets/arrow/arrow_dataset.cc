#include "arrow_columns.h"
#include "arrow_file.h"
#include "column_view.h"

#include <millrace/datasets/arrays/row_reading.h>
#include <millrace/datasets/arrow/arrow_dataset.h>
#include <millrace/pipeline/base/error.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <list>
#include <mutex>
#include <optional>
#include <utility>

#include <arrow/api.h>

namespace millrace {

using namespace detail;

namespace {

struct Block {
  std::vector<ColumnView> columns;
  std::optional<ColumnView> source;
  std::int64_t bytes = 0;
};

std::int64_t rows_of_each(const std::vector<std::int64_t>& starts) {
  if (starts.size() < 2 || starts[1] == 0) return 0;
  for (std::size_t i = 1; i + 1 < starts.size(); ++i) {
    if (starts[i] != starts[1] * static_cast<std::int64_t>(i)) return 0;
  }
  // The last batch may be shorter, but not longer.
  auto batches = static_cast<std::int64_t>(starts.size()) - 1;
  return starts.back() <= starts[1] * batches ? starts[1] : 0;
}

std::int64_t bytes_of(const arrow::ArrayData& data) {
  std::int64_t bytes = 0;
  for (const auto& buffer : data.buffers) bytes += buffer ? buffer->size() : 0;
  for (const auto& child : data.child_data) bytes += bytes_of(*child);
  return bytes;
}

}  // namespace

struct ArrowDataset::State {
  State(const std::filesystem::path& path, const ArrowOptions& given)
      : options(given),
        file(path, given.access),
        plans(plan_columns(file, given.columns)),
        schema(schema_of(plans)),
        blocks(static_cast<std::size_t>(file.batches())),
        plain_rows(blocks.size() * plans.size()),
        plain_bytes(plans.size()),
        uniform(rows_of_each(file.starts())) {
    // A caller allocates memory for a row. If the file has rows, they confirm the size in the
    // schema.
    constexpr std::int64_t believed = 256 << 20;
    if (std::int64_t row = row_bytes(schema); file.starts().back() == 0 && row > believed) {
      throw Error("the file has no rows, but its schema claims " + std::to_string(row) +
                  " bytes for each")
          .at(path.string());
    }
    read_lengths();
    if (!file.description()) return;
    int column = file.schema().GetFieldIndex(std::string(source_column));
    if (column >= 0) source = ColumnPlan{text_field(std::string(source_column)), column};
  }

  // Read now, because length() must return at once. In a damaged batch lengths are 0, and loading a
  // row reports the damage.
  void read_lengths() {
    if (options.length_of.empty()) return;
    const ColumnPlan plan = plan_columns(file, {options.length_of}).front();
    if (plan.field.is_fixed() || plan.field.text) {
      throw Error("the column '" + options.length_of + "' is no list: it has no lengths")
          .at(file.path().string())
          .kind(ErrorKind::usage);
    }
    for (int i = 0; i < file.batches(); ++i) {
      const auto rows = static_cast<std::size_t>(file.starts()[static_cast<std::size_t>(i) + 1]);
      try {
        const ColumnView view(plan, file.batch(i));
        for (std::int64_t row = 0; lengths.size() < rows; ++row) {
          lengths.push_back(view.length(row));
        }
      } catch (const Error&) {
        lengths.resize(rows);
      }
    }
  }

  struct Place {
    std::size_t batch;
    std::int64_t row;
  };
  Place find(std::int64_t index) const {
    const std::vector<std::int64_t>& starts = file.starts();
    if (index < 0 || index >= starts.back()) {
      throw Error("there is no row " + std::to_string(index) + " of " +
                  std::to_string(starts.back()))
          .at(file.path().string())
          .kind(ErrorKind::usage);
    }
    if (uniform > 0) {
      auto whole = static_cast<std::uint64_t>(uniform), row = static_cast<std::uint64_t>(index);
      bool power = std::has_single_bit(whole);
      std::size_t batch = power ? row >> std::countr_zero(whole) : row / whole;
      batch = std::min(batch, blocks.size() - 1);
      return {batch, index - starts[batch]};
    }
    auto after = std::upper_bound(starts.begin(), starts.end(), index);
    return {static_cast<std::size_t>(after - starts.begin()) - 1, index - *(after - 1)};
  }

  std::shared_ptr<const Block> make(std::size_t number) const {
    auto batch = file.batch(static_cast<int>(number));
    auto block = std::make_shared<Block>();
    try {
      for (const ColumnPlan& plan : plans) block->columns.emplace_back(plan, batch);
      if (source) block->source.emplace(*source, batch);
    } catch (Error& error) {
      throw error.at(file.path().string());
    }
    for (int i = 0; i < batch->num_columns(); ++i) block->bytes += bytes_of(*batch->column_data(i));
    return block;
  }

  // For an uncompressed file every batch is kept, because it is only addresses: no lock needed.
  const Block& plain(std::size_t number) {
    if (const Block* block = blocks[number].load(std::memory_order_acquire)) return *block;
    auto made = make(number);
    std::lock_guard lock(mutex);
    if (const Block* block = blocks[number].load(std::memory_order_acquire)) return *block;
    owned.push_back(made);
    remember_plain_rows(number, *made);
    blocks[number].store(made.get(), std::memory_order_release);
    return *made;
  }

  // Rows of fixed size are found with one small table. Following the pointers of a Block instead
  // would miss the processor's cache for every random row.
  void remember_plain_rows(std::size_t number, const Block& block) {
    std::vector<const std::byte*> rows;
    for (std::size_t i = 0; i < plans.size(); ++i) {
      std::size_t bytes = 0;
      rows.push_back(block.columns[i].plain_rows(bytes));
      if (rows.back() == nullptr) return;
      plain_bytes[i].store(bytes, std::memory_order_relaxed);
    }
    // The first column is set last: a thread that sees it sees all columns.
    for (std::size_t i = rows.size(); i-- > 0;) {
      plain_rows[number * rows.size() + i].store(rows[i], std::memory_order_release);
    }
  }
  bool is_plain(const Place& place) const {
    return !plans.empty() && rows_of(place.batch, 0) != nullptr;
  }
  const std::byte* rows_of(std::size_t batch, std::size_t column) const {
    return plain_rows[batch * plans.size() + column].load(std::memory_order_acquire);
  }
  const std::byte* plain_row(const Place& place, std::size_t column) const {
    return rows_of(place.batch, column) +
           static_cast<std::size_t>(place.row) * bytes_of_row(column);
  }
  std::size_t bytes_of_row(std::size_t column) const {
    return plain_bytes[column].load(std::memory_order_relaxed);
  }

  // For a compressed file the most recent batches are kept, up to unpacked_bytes.
  std::shared_ptr<const Block> unpacked(std::size_t number) {
    {
      std::lock_guard lock(mutex);
      auto found = std::ranges::find(recent, number, &Recent::number);
      if (found != recent.end()) {
        recent.splice(recent.begin(), recent, found);
        return recent.front().block;
      }
    }
    auto made = make(number);
    std::lock_guard lock(mutex);
    recent.push_front({number, made});
    recent_bytes += made->bytes;
    while (recent_bytes > options.unpacked_bytes && recent.size() > 1) {
      recent_bytes -= recent.back().block->bytes;
      recent.pop_back();
    }
    return made;
  }

  template <typename Use>
  auto with_block(std::size_t number, const Use& use) {
    if (!file.compressed()) return use(plain(number));
    return use(*unpacked(number));
  }

  ArrowOptions options;
  ArrowFile file;
  std::vector<ColumnPlan> plans;
  Schema schema;
  std::vector<std::int64_t> lengths;
  std::optional<ColumnPlan> source;
  std::vector<std::atomic<const Block*>> blocks;
  std::vector<std::atomic<const std::byte*>> plain_rows;  // index: batch * columns + column
  std::vector<std::atomic<std::size_t>> plain_bytes;      // size of a row, by column
  std::int64_t uniform;  // rows per batch, if all but the last have the same number; else 0
  std::mutex mutex;      // guards the members below
  std::vector<std::shared_ptr<const Block>> owned;
  struct Recent {
    std::size_t number;
    std::shared_ptr<const Block> block;
  };
  std::list<Recent> recent;
  std::int64_t recent_bytes = 0;
};

ArrowDataset::ArrowDataset(const std::filesystem::path& path, const ArrowOptions& options)
    : state_(std::make_shared<State>(path, options)) {}

std::int64_t ArrowDataset::size() const {
  return state_->file.starts().back();
}

const Schema& ArrowDataset::schema() const {
  return state_->schema;
}

Status ArrowDataset::load(std::int64_t index, const LoadContext&, Sample& sample) const {
  State::Place place = state_->find(index);
  if (state_->is_plain(place)) {
    for (std::size_t i = 0; i < state_->plans.size(); ++i) {
      std::memcpy(sample.out(static_cast<int>(i)).data(), state_->plain_row(place, i),
                  state_->bytes_of_row(i));
    }
    return {};
  }
  return state_->with_block(place.batch, [&](const Block& block) -> Status {
    for (std::size_t i = 0; i < block.columns.size(); ++i) {
      Status status = block.columns[i].load(place.row, static_cast<int>(i), sample);
      if (!status.ok()) return status;
    }
    return {};
  });
}

std::string ArrowDataset::source(std::int64_t index) const {
  if (!state_->source) return {};
  State::Place place = state_->find(index);
  return state_->with_block(
      place.batch, [&](const Block& block) { return std::string(block.source->text(place.row)); });
}

std::string ArrowDataset::describe(std::int64_t index) const {
  std::string row = state_->file.path().string() + ", row " + std::to_string(index);
  try {
    const std::string from = source(index);
    return from.empty() ? row : row + " (" + from + ")";
  } catch (const Error&) {
    return row;  // the batch is damaged
  }
}

void ArrowDataset::expect(std::int64_t index, std::int64_t /*epoch*/) const noexcept {
  if (state_->file.compressed() || index < 0 || index >= size()) return;
  State::Place place = state_->find(index);
  if (state_->is_plain(place)) {
    for (std::size_t i = 0; i < state_->plans.size(); ++i) {
      fetch_ahead(state_->plain_row(place, i), state_->bytes_of_row(i));
    }
    return;
  }
  const Block* block = state_->blocks[place.batch].load(std::memory_order_acquire);
  if (block == nullptr) return;
  for (const ColumnView& column : block->columns) column.expect(place.row);
}

std::int64_t ArrowDataset::length(std::int64_t index, std::int64_t /*epoch*/) const {
  const auto at = static_cast<std::size_t>(index);
  return at < state_->lengths.size() ? state_->lengths[at] : 0;
}

std::int64_t ArrowDataset::samples_per_task() const {
  if (state_->file.compressed() || size() == 0) return 1;
  return rows_worth_a_task(static_cast<std::int64_t>(state_->file.file().size()) / size());
}

}  // namespace millrace
