// Damaged copies of caches: cut off anywhere, or with one bit flipped anywhere. Each must be an
// error when it is opened or read; only the values themselves may differ unnoticed, and then
// verify_cache() must see it.
#include "cache_rows.h"
#include "tests/reference.h"

#include <millrace/datasets/arrays/memmap.h>
#include <millrace/datasets/arrow/arrow_dataset.h>
#include <millrace/datasets/arrow/arrow_layout.h>
#include <millrace/pipeline/base/random.h>

#include <memory>

#include <gtest/gtest.h>

namespace millrace {
namespace {

constexpr std::int64_t sources = 45;

Schema mixed_schema() {
  return {{.name = "fixed", .dtype = DType::int64, .shape = {3, 2}},
          {.name = "list", .dtype = DType::int32, .shape = {-1}},
          {.name = "grid", .dtype = DType::uint8, .shape = {-1, -1, 2}},
          {.name = "flag", .dtype = DType::boolean, .shape = {2}},
          text_field("caption")};
}

std::unique_ptr<Dataset> open(const std::filesystem::path& path) {
  if (path.extension() == ".arrow") return std::make_unique<ArrowDataset>(path);
  if (path.extension() == ".npy") return std::make_unique<NpyDataset>(path);
  return std::make_unique<RawMemmap>(path);
}

struct Reading {
  std::string error;           // what opening or reading said
  bool values_differ = false;  // of rows whose shapes are right
};

Reading read_all(const std::filesystem::path& path, const std::vector<std::int64_t>& indices) {
  Reading reading;
  try {
    auto dataset = open(path);
    EXPECT_EQ(dataset->size(), std::ssize(indices)) << "another number of rows, and no error";
    Sample sample(dataset->schema());
    for (std::int64_t row = 0; row < dataset->size(); ++row) {
      sample.restart();
      Status status = dataset->load(row, {.index = row}, sample);
      if (!status.ok()) {
        reading.error = status.error().what();
        return reading;
      }
      for (const Field& field : dataset->schema()) {
        Array expected = row_value(field, indices[static_cast<std::size_t>(row)]);
        EXPECT_EQ(sample[field.name].shape(), expected.shape()) << "a wrong row, and no error";
        reading.values_differ |= !same_elements(sample[field.name], expected);
      }
    }
  } catch (const Error& error) {
    reading.error = error.what();
  }
  return reading;
}

struct Kind {
  std::string name;  // of the file
  int zstd = 0;
  int copies = 0;
};
void PrintTo(const Kind& kind, std::ostream* out) {
  *out << kind.name << (kind.zstd > 0 ? " zstd" : "");
}

class Damage : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    path_ = folder_ / GetParam().name;
    Schema schema = path_.extension() == ".arrow"
                        ? mixed_schema()
                        : Schema{{.name = "x", .dtype = DType::int16, .shape = {5}}};
    write_cache(path_, schema, sources, {.zstd_level = GetParam().zstd, .shard_rows = 10}, true);
    for (std::int64_t i = 0; i < sources; ++i) {
      if (!is_bad(i)) indices_.push_back(i);
    }
    whole_ = bytes_of_file(path_);
    ASSERT_EQ(read_all(path_, indices_).error, "");
    ASSERT_FALSE(read_all(path_, indices_).values_differ);
  }

  // Where rows stand: [first, end).
  std::pair<std::size_t, std::size_t> data_region() const {
    if (path_.extension() == ".bin") return {0, whole_.size()};
    if (path_.extension() == ".npy") return {128, whole_.size()};
    std::int32_t footer = 0;
    std::memcpy(&footer, whole_.data() + whole_.size() - detail::footer_end_bytes, sizeof footer);
    detail::ArrowSeal seal{};
    std::size_t at = whole_.size() - detail::footer_end_bytes - static_cast<std::size_t>(footer);
    std::memcpy(&seal, whole_.data() + at - sizeof seal, sizeof seal);
    EXPECT_TRUE(detail::is_sealed(seal));
    return {seal.header_bytes, seal.header_bytes + seal.data_bytes};
  }

  void write(const std::filesystem::path& path, const std::string& content) {
    std::ofstream(path, std::ios::binary) << content;
  }

  TemporaryFolder folder_;
  std::filesystem::path path_;
  std::string whole_;
  std::vector<std::int64_t> indices_;
};

TEST_P(Damage, OfOneBitIsAnErrorOrSeenByVerify) {
  auto [first, end] = data_region();
  Random random(1, 0, 0, GetParam().name);
  int errors = 0, seen = 0;
  for (int copy = 0; copy < GetParam().copies; ++copy) {
    // Half of them where the file tells of itself, half where the rows are.
    std::size_t outside = whole_.size() - (end - first);
    std::size_t at = 0;
    bool in_data = outside == 0 || copy % 2 == 0;
    if (in_data) {
      at = first + static_cast<std::size_t>(random.below(static_cast<std::int64_t>(end - first)));
    } else {
      at = static_cast<std::size_t>(random.below(static_cast<std::int64_t>(outside)));
      if (at >= first) at += end - first;
    }
    std::string damaged = whole_;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << random.below(8)));
    write(path_, damaged);
    Reading reading = read_all(path_, indices_);
    CacheCheck check = verify_cache(path_);
    SCOPED_TRACE("byte " + std::to_string(at) + " of " + std::to_string(whole_.size()));
    if (!in_data) {
      EXPECT_NE(reading.error, "");
    }
    EXPECT_FALSE(check.problems.empty());
    (reading.error.empty() ? seen : errors) += 1;
    ASSERT_FALSE(HasFailure());
  }
  if (GetParam().zstd > 0) {
    EXPECT_EQ(seen, 0) << "compressed batches are checked when they are read";
  }
  RecordProperty("errors", errors);
  RecordProperty("seen_by_verify", seen);
}

TEST_P(Damage, ByCuttingOffOrAddingIsAnError) {
  Random random(2, 0, 0, GetParam().name);
  for (int copy = 0; copy < GetParam().copies / 4; ++copy) {
    std::string damaged = whole_;
    std::int64_t by =
        copy % 2 == 0 ? 1 + copy / 2 : 1 + random.below(static_cast<std::int64_t>(whole_.size()));
    by = std::min<std::int64_t>(by, std::ssize(whole_));
    damaged.resize(whole_.size() - static_cast<std::size_t>(by));
    write(path_, damaged);
    EXPECT_NE(read_all(path_, indices_).error, "") << by << " bytes less";
    EXPECT_FALSE(verify_cache(path_).problems.empty());
    write(path_, whole_ + std::string(static_cast<std::size_t>(by), 'x'));
    EXPECT_NE(read_all(path_, indices_).error, "") << by << " bytes more";
  }
}

TEST_P(Damage, OfTheFilesBesideIsAnError) {
  Random random(3, 0, 0, GetParam().name);
  auto side = path_.string() + ".json", list = path_.string() + ".sources.jsonl";
  if (!std::filesystem::exists(side)) GTEST_SKIP() << "all is in one file";
  std::string description = bytes_of_file(side), lines = bytes_of_file(list);
  for (int copy = 0; copy < GetParam().copies / 4; ++copy) {
    std::string damaged = description;
    auto at = static_cast<std::size_t>(random.below(std::ssize(damaged)));
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << random.below(8)));
    write(side, copy % 2 == 0 ? damaged : description.substr(0, at));
    EXPECT_NE(read_all(path_, indices_).error, "") << at;
    write(side, description);
    damaged = lines;
    at = static_cast<std::size_t>(random.below(std::ssize(damaged)));
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << random.below(8)));
    write(list, copy % 2 == 0 ? damaged : lines.substr(0, at));
    EXPECT_FALSE(verify_cache(path_).problems.empty());
    write(list, lines);
  }
  EXPECT_EQ(read_all(path_, indices_).error, "");
}

INSTANTIATE_TEST_SUITE_P(Caches, Damage,
                         testing::Values(Kind{"x.npy", 0, 300}, Kind{"x.bin", 0, 200},
                                         Kind{"x.arrow", 0, 500}, Kind{"x.arrow", 3, 500}));

// A file that only claims to be large must not be believed.
TEST(Npy, HeadersThatLieAreRefused) {
  TemporaryFolder folder;
  auto refused = [&](const std::string& dictionary, std::size_t data = 64) {
    std::string text = dictionary;
    text.append(118 - text.size() - 1, ' ').append("\n");
    std::string file("\x93NUMPY\x01\x00", 8);
    file += {static_cast<char>(text.size()), '\0'};
    std::ofstream(folder / "x.npy", std::ios::binary) << file << text << std::string(data, '\0');
    try {
      NpyDataset dataset(folder / "x.npy");
      return false;
    } catch (const Error&) {
      return true;
    }
  };
  EXPECT_FALSE(refused("{'descr': '<i8', 'fortran_order': False, 'shape': (8,), }"));
  EXPECT_FALSE(refused("{'shape': (2, 4), 'fortran_order': False, 'descr': \"<i8\"}"));
  EXPECT_TRUE(refused("{'descr': '<i8', 'fortran_order': False, 'shape': (9,), }"));
  EXPECT_TRUE(refused("{'descr': '<i8', 'fortran_order': False, 'shape': (7,), }"));
  EXPECT_TRUE(
      refused("{'descr': '<i8', 'fortran_order': False, 'shape': (2305843009213693960,), }"));
  EXPECT_TRUE(
      refused("{'descr': '<i8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }"));
  EXPECT_TRUE(refused("{'descr': '<i8', 'fortran_order': False, 'shape': (-8,), }"));
  EXPECT_TRUE(refused("{'descr': '<i8', 'fortran_order': False, 'shape': (8,), } x"));
  EXPECT_TRUE(refused("{'descr': '<i8', 'fortran_order': False, }"));
  EXPECT_TRUE(refused("{'descr': '<i8', 'descr': '<i8', 'fortran_order': False, 'shape': (8,)}"));
  EXPECT_TRUE(refused("{'descr': '<i8', 'fortran_order': Maybe, 'shape': (8,)}"));
  EXPECT_TRUE(refused("{'descr': '<i8', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,8)}"));
}

}  // namespace
}  // namespace millrace
