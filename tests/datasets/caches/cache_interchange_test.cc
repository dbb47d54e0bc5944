// Caches written here are opened by numpy and pyarrow and every value is compared; files that numpy
// and pyarrow wrote are opened here.
#include "cache_rows.h"
#include "tests/reference.h"

#include <millrace/datasets/arrays/memmap.h>
#include <millrace/datasets/arrow/arrow_dataset.h>
#include <millrace/pipeline/loader/loader.h>

#include <gtest/gtest.h>

namespace millrace {
namespace {

const std::vector<DType> all_types = {
    DType::boolean,  DType::uint8,   DType::int8,   DType::uint16, DType::int16,
    DType::uint32,   DType::int32,   DType::uint64, DType::int64,  DType::float16,
    DType::bfloat16, DType::float32, DType::float64};

// Every kind of column that a cache has.
Schema rich_schema() {
  std::vector<Field> fields;
  for (DType dtype : all_types) {
    std::string name(name_of(dtype));
    fields.push_back({.name = "one_" + name, .dtype = dtype, .shape = {}});
    fields.push_back({.name = "fixed_" + name, .dtype = dtype, .shape = {2, 3}});
    fields.push_back({.name = "list_" + name, .dtype = dtype, .shape = {-1}});
  }
  fields.push_back({.name = "vertices", .dtype = DType::float32, .shape = {-1, 3}});
  fields.push_back({.name = "frames", .dtype = DType::uint8, .shape = {-1, -1, 2}});
  fields.push_back(text_field("caption"));
  fields.push_back({.name = "encoded", .dtype = DType::uint8, .shape = {-1}});
  return Schema(std::move(fields));
}

// Loads every row of a data set and compares it with what the row's source number tells.
void expect_rows(const Dataset& dataset, const std::vector<std::int64_t>& indices) {
  ASSERT_EQ(dataset.size(), std::ssize(indices));
  Sample sample(dataset.schema());
  for (std::int64_t row = 0; row < dataset.size(); ++row) {
    sample.restart();
    Status status = dataset.load(row, {.index = row}, sample);
    ASSERT_TRUE(status.ok()) << status.error().what();
    ASSERT_EQ(sample.first_unfilled(), -1);
    for (const Field& field : dataset.schema()) {
      Array expected = row_value(field, indices[static_cast<std::size_t>(row)]);
      ASSERT_TRUE(same_elements(sample[field.name], expected))
          << "row " << row << ", field " << field.name << ": " << to_string(sample[field.name]);
    }
  }
}

std::vector<std::int64_t> good_indices(std::int64_t sources) {
  std::vector<std::int64_t> good;
  for (std::int64_t i = 0; i < sources; ++i) {
    if (!is_bad(i)) good.push_back(i);
  }
  return good;
}

TEST(Npy, EveryTypeOpensInNumpyAndComesBack) {
  TemporaryFolder folder;
  for (DType dtype : all_types) {
    Schema schema{{.name = "x", .dtype = dtype, .shape = {4, 3}}};
    auto path = folder / (std::string(name_of(dtype)) + ".npy");
    CacheInfo info = write_cache(path, schema, 53, {.shard_rows = 8}, true);
    EXPECT_EQ(info.rows, 48);
    EXPECT_EQ(info.failed, 5);
    expect_rows(NpyDataset(path), good_indices(53));
    EXPECT_TRUE(verify_cache(path).problems.empty());
  }
  EXPECT_EQ(run_python(std::string(python_rows) + R"(
import os
checked = 0
for name in sorted(os.listdir(sys.argv[1])):
    if not name.endswith('.npy'): continue
    dtype = name[:-4]
    a = np.load(sys.argv[1] + '/' + name, mmap_mode='r')
    assert a.shape == (48, 4, 3), a.shape
    assert a.dtype == np.dtype('uint16' if dtype == 'bfloat16' else dtype), a.dtype
    for row, index in zip(a, good(53)):
        assert np.array_equal(row, expected(index, (4, 3), dtype)), (dtype, index)
    side = json.load(open(sys.argv[1] + '/' + name + '.json'))['millrace']
    assert side['rows'] == 48 and side['failed'] == 5 and side['options'] == {'transform': 'none'}
    lines = [json.loads(l) for l in open(sys.argv[1] + '/' + name + '.sources.jsonl')]
    assert [l['index'] for l in lines] == list(range(53))
    assert [l['index'] for l in lines if 'failed' not in l] == good(53)
    checked += 1
print(checked)
)",
                       folder.path().string()),
            "13\n");
}

TEST(RawMemmap, OpensInNumpyWithItsShapeGivenAndComesBackBothWays) {
  TemporaryFolder folder;
  Schema schema{{.name = "video", .dtype = DType::uint8, .shape = {5, 4, 4}}};
  write_cache(folder / "v.bin", schema, 40, {.shard_rows = 16});
  expect_rows(RawMemmap(folder / "v.bin"), [] {
    std::vector<std::int64_t> all(40);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
    return all;
  }());
  EXPECT_EQ(run_python(std::string(python_rows) + R"(
a = np.memmap(sys.argv[1], np.uint8, 'r', shape=(40, 5, 4, 4))
print(all(np.array_equal(a[i], expected(i, (5, 4, 4), 'uint8')) for i in range(40)))
)",
                       (folder / "v.bin").string()),
            "True\n");
  std::filesystem::remove(folder / "v.bin.json");
  RawMemmap given(folder / "v.bin", schema[0], 40);
  EXPECT_EQ(given.size(), 40);
  EXPECT_THROW(RawMemmap(folder / "v.bin", schema[0], 41), Error);
  EXPECT_THROW(RawMemmap(folder / "v.bin"), Error);
}

class ArrowCache : public testing::TestWithParam<int> {};

TEST_P(ArrowCache, EveryKindOfColumnOpensInPyarrowAndComesBack) {
  TemporaryFolder folder;
  auto path = folder / "all.arrow";
  Schema schema = rich_schema();
  CacheOptions options{.zstd_level = GetParam(), .shard_rows = 16, .binary = {"encoded"}};
  CacheInfo info = write_cache(path, schema, 123, options, true);
  EXPECT_EQ(info.rows, 111);
  expect_rows(ArrowDataset(path), good_indices(123));
  CacheCheck check = verify_cache(path);
  EXPECT_TRUE(check.has_checksums);
  EXPECT_TRUE(check.problems.empty()) << check.problems[0];
  EXPECT_FALSE(std::filesystem::exists(path.string() + ".parts"));
  EXPECT_EQ(run_python(std::string(python_rows) + R"(
import pyarrow as pa
reader = pa.ipc.open_file(pa.memory_map(sys.argv[1]))
table = reader.read_all()
table.validate(full=True)
about = json.loads(table.schema.metadata[b'millrace'])
assert about['rows'] == 111 and about['failed'] == 12 and len(about['first_failures']) == 12
types = {str(table.schema.field(n).type) for n in ('caption', 'encoded', 'fixed_int64', 'list_int64')}
assert types == {'string', 'binary', 'fixed_size_list<item: int64>[6]', 'list<item: int64>'}, types
for field in about['fields']:
    name, shape, dtype = field['name'], field['shape'], field['dtype']
    column = table[name].to_pylist()
    assert len(column) == 111
    for value, index in zip(column, good(123)):
        if field['text']: want = 'text %d é' % index
        elif name == 'encoded': want = expected(index, varied(index, shape), dtype).tobytes()
        else:
            want = expected(index, varied(index, shape), dtype).reshape(-1).tolist()
            want = want if shape else want[0]
        assert value == want, (name, index, value, want)
shapes = table['frames.shape'].to_pylist()
assert shapes == [varied(i, [-1, -1, 2]) for i in good(123)]
assert table['source'].to_pylist() == ['folder/file %d.png' % i for i in good(123)]
assert table['source_bytes'].to_pylist() == [1000 + i for i in good(123)]
print('equal')
)",
                       path.string()),
            "equal\n");
}

TEST_P(ArrowCache, KnowsItsSourcesAndFailures) {
  TemporaryFolder folder;
  auto path = folder / "x.arrow";
  Schema schema{{.name = "x", .dtype = DType::int16, .shape = {-1}}};
  write_cache(path, schema, 50, {.zstd_level = GetParam(), .shard_rows = 7}, true);
  std::vector<std::int64_t> failed;
  for_each_failure(path, [&](const CacheFailure& failure) {
    EXPECT_EQ(failure.source.name, source_of(failure.index).name);
    EXPECT_EQ(failure.reason, "cannot decode (broken)");
    failed.push_back(failure.index);
  });
  EXPECT_EQ(failed, (std::vector<std::int64_t>{3, 13, 23, 33, 43}));
  std::int64_t rows = 0;
  for_each_source(path, [&](std::int64_t row, const CacheSource& source) {
    EXPECT_EQ(row, rows);
    EXPECT_EQ(source.bytes, 1000 + good_indices(50)[static_cast<std::size_t>(rows++)]);
  });
  EXPECT_EQ(rows, 45);
  EXPECT_EQ(read_cache_info(path).reasons.at("cannot decode (broken)"), 5);
  EXPECT_NE(ArrowDataset(path).describe(3).find("folder/file 4.png"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(PlainAndZstd, ArrowCache, testing::Values(0, 3));

TEST(Npy, WrittenByNumpyOpensHere) {
  TemporaryFolder folder;
  run_python(std::string(python_rows) + R"(
for version in (1, 2, 3):
    for dtype in 'bool uint8 int8 uint16 int16 uint32 int32 uint64 int64 float16 float32 float64'.split():
        a = np.stack([expected(i, (2, 3), dtype) for i in range(9)])
        with open('%s/%s.%d.npy' % (sys.argv[1], dtype, version), 'wb') as f:
            np.lib.format.write_array(f, a, version=(version, 0))
np.save(sys.argv[1] + '/fortran.npy', np.asfortranarray(np.ones((3, 4))))
np.save(sys.argv[1] + '/big.npy', np.ones((3, 4), '>i4'))
np.save(sys.argv[1] + '/object.npy', np.array([{}, 1], dtype=object))
np.save(sys.argv[1] + '/complex.npy', np.ones((3, 4), 'complex64'))
np.save(sys.argv[1] + '/struct.npy', np.zeros(3, [('a', 'i4')]))
np.save(sys.argv[1] + '/scalar.npy', np.float32(3))
np.save(sys.argv[1] + '/flat.npy', np.arange(5))
)",
             folder.path().string());
  int opened = 0;
  for (DType dtype : all_types) {
    for (int version = 1; version <= 3 && dtype != DType::bfloat16; ++version, ++opened) {
      auto name = std::string(name_of(dtype)) + "." + std::to_string(version) + ".npy";
      expect_rows(NpyDataset(folder / name), {0, 1, 2, 3, 4, 5, 6, 7, 8});
    }
  }
  EXPECT_EQ(opened, 36);
  EXPECT_EQ(NpyDataset(folder / "flat.npy").schema()[0].shape, Shape{});
  auto reason = [&](const std::string& name) {
    try {
      NpyDataset(folder / name);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("opened");
  };
  EXPECT_NE(reason("fortran.npy").find("Fortran order"), std::string::npos);
  EXPECT_NE(reason("big.npy").find("big-endian"), std::string::npos);
  EXPECT_NE(reason("object.npy").find("Python objects"), std::string::npos);
  EXPECT_NE(reason("complex.npy").find("'<c8'"), std::string::npos);
  EXPECT_NE(reason("struct.npy").find("structured"), std::string::npos);
  EXPECT_NE(reason("scalar.npy").find("no rows"), std::string::npos);
}

TEST(ArrowDataset, WrittenByPyarrowOpensHere) {
  TemporaryFolder folder;
  run_python(std::string(python_rows) + R"(
import pyarrow as pa
def fields(n):
    rows = range(n)
    flat = lambda s, d: pa.array(np.concatenate([expected(i, s, d).reshape(-1) for i in rows]))
    tensor = pa.FixedShapeTensorArray.from_numpy_ndarray(np.stack([expected(i, (2, 3), 'float32') for i in rows]))
    lists = [expected(i, varied(i, [-1]), 'int32').tolist() for i in rows]
    return pa.table({
      'one': pa.array([int(expected(i, (), 'int64')) for i in rows]),
      'flag': pa.array([bool(expected(i, (), 'bool')) for i in rows]),
      'fixed': pa.FixedSizeListArray.from_arrays(flat((4,), 'uint16'), 4),
      'nested': pa.FixedSizeListArray.from_arrays(pa.FixedSizeListArray.from_arrays(flat((2, 3), 'int8'), 3), 2),
      'flags': pa.FixedSizeListArray.from_arrays(flat((5,), 'bool'), 5),
      'tensor': tensor,
      'list': pa.array(lists, pa.list_(pa.int32())),
      'large': pa.array(lists, pa.large_list(pa.int32())),
      'points': pa.array([expected(i, varied(i, [-1, 3]), 'float64').tolist() for i in rows], pa.list_(pa.list_(pa.float64(), 3))),
      'marks': pa.array([expected(i, varied(i, [-1]), 'bool').tolist() for i in rows], pa.list_(pa.bool_())),
      'text': pa.array(['text %d é' % i for i in rows]),
      'large_text': pa.array(['text %d é' % i for i in rows], pa.large_string()),
      'coded': pa.array(['text %d é' % i for i in rows]).dictionary_encode(),
      'bytes': pa.array([expected(i, varied(i, [-1]), 'uint8').tobytes() for i in rows], pa.large_binary()),
      'digest': pa.array([expected(i, (4,), 'uint8').tobytes() for i in rows], pa.binary(4)),
    })
t = fields(60)
for name, codec in (('plain', None), ('zstd', 'zstd'), ('lz4', 'lz4')):
    options = pa.ipc.IpcWriteOptions(compression=codec, emit_dictionary_deltas=True)
    with pa.ipc.new_file('%s/%s.arrow' % (sys.argv[1], name), t.schema, options=options) as w:
        w.write_table(t.slice(0, 20)); w.write_table(t.slice(20), max_chunksize=17)
bad = pa.table({'ok': [1, 2], 'when': pa.array([1, 2], pa.timestamp('s')), 'holes': pa.array([1, None])})
with pa.ipc.new_file(sys.argv[1] + '/bad.arrow', bad.schema) as w: w.write_table(bad)
)",
             folder.path().string());
  std::vector<std::int64_t> all(60);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
  for (const char* name : {"plain.arrow", "zstd.arrow", "lz4.arrow"}) {
    ArrowDataset dataset(folder / name);
    EXPECT_EQ(dataset.schema().size(), 15);
    EXPECT_EQ(dataset.schema()[dataset.schema().at("tensor")].shape, (Shape{2, 3}));
    expect_rows(dataset, all);
    CacheCheck check = verify_cache(folder / name);
    EXPECT_FALSE(check.has_checksums);
    EXPECT_TRUE(check.problems.empty());
  }
  try {
    ArrowDataset wrong(folder / "bad.arrow");
    ADD_FAILURE() << "a column of times was taken";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("'when' is timestamp[s]"), std::string::npos);
  }
  ArrowDataset holes(folder / "bad.arrow", {.columns = {"holes"}});
  Sample sample(holes.schema());
  EXPECT_TRUE(holes.load(0, {}, sample).ok());
  EXPECT_FALSE(holes.load(1, {}, sample).ok());
  EXPECT_THROW(ArrowDataset(folder / "bad.arrow", {.columns = {"no"}}), Error);
}

// As Hugging Face's datasets keep them: Arrow's stream format; and polars' views of texts.
TEST(ArrowDataset, StreamsAndViewsOfOthersOpenHere) {
  TemporaryFolder folder;
  run_python(std::string(python_rows) + R"(
import pyarrow as pa, datasets, polars
datasets.disable_progress_bars()
lists = [expected(i, varied(i, [-1]), 'int32').tolist() for i in range(30)]
texts = ['text %d é' % i for i in range(30)]
table = pa.table({'list': pa.array(lists, pa.list_(pa.int32())), 'text': texts})
datasets.Dataset(table).save_to_disk(sys.argv[1] + '/saved')
polars.DataFrame({'text': texts, 'bytes': [expected(i, varied(i, [-1]), 'uint8').tobytes() for i in range(30)]}
                 ).write_ipc(sys.argv[1] + '/views.arrow')
for name, codec in (('plain', None), ('zstd', 'zstd')):
    options = pa.ipc.IpcWriteOptions(compression=codec)
    with pa.ipc.new_stream('%s/%s.arrow' % (sys.argv[1], name), table.schema, options=options) as w:
        w.write_table(table, max_chunksize=7)
odd = pa.table({'when': pa.array([1, 2], pa.timestamp('s')), 'n': pa.array([1, None])})
with pa.ipc.new_file(sys.argv[1] + '/odd.arrow', odd.schema) as w: w.write_table(odd)
)",
             folder.path().string());
  std::vector<std::int64_t> all(30);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
  for (const char* name : {"plain.arrow", "saved/data-00000-of-00001.arrow", "views.arrow"}) {
    expect_rows(ArrowDataset(folder / name), all);
    EXPECT_TRUE(verify_cache(folder / name).problems.empty());
    EXPECT_EQ(read_cache_info(folder / name).rows, 30);
  }
  EXPECT_EQ(read_cache_info(folder / "odd.arrow").unreadable.at("when"), "timestamp[s]");
  EXPECT_THROW(ArrowDataset(folder / "zstd.arrow"), Error);
  std::string bytes = bytes_of_file(folder / "plain.arrow");
  for (std::size_t cut = 0; cut < bytes.size(); cut += 13) {
    std::ofstream(folder / "cut.arrow", std::ios::binary) << bytes.substr(0, cut);
    EXPECT_THROW(ArrowDataset(folder / "cut.arrow"), Error) << cut;
  }
}

// Whoever opens a file makes room for a row, so one that nothing proves must be of a likely size.
TEST(ArrowDataset, WithoutRowsOpensUnlessItClaimsHugeOnes) {
  TemporaryFolder folder;
  run_python(R"(
import sys, pyarrow as pa
for name, elements in (("usual", 196608), ("huge", 2**31 - 1)):
    schema = pa.schema([("x", pa.list_(pa.uint8(), elements))])
    with pa.ipc.new_file(f"{sys.argv[1]}/{name}.arrow", schema): pass
)",
             folder.path());
  EXPECT_EQ(ArrowDataset(folder / "usual.arrow").size(), 0);
  try {
    ArrowDataset huge(folder / "huge.arrow");
    FAIL() << "opened";
  } catch (const Error& error) {
    EXPECT_NE(error.reason().find("2147483647 bytes"), std::string::npos) << error.reason();
  }
}

TEST(ArrowDataset, GivesTheLoaderViewsOfTheMappingThatOutliveIt) {
  TemporaryFolder folder;
  Schema schema{{.name = "tokens", .dtype = DType::int32, .shape = {-1}}, text_field("caption")};
  write_cache(folder / "x.arrow", schema, 64, {.shard_rows = 16});
  std::vector<Array> kept;
  std::vector<std::int64_t> indices;
  {
    Loader loader(ArrowDataset(folder / "x.arrow"), {.batch_size = 8, .shuffle = true});
    for (const Batch& batch : loader) {
      for (const Array& row : batch.list("tokens")) kept.push_back(row);
      indices.insert(indices.end(), batch.indices().begin(), batch.indices().end());
    }
  }
  ASSERT_EQ(kept.size(), 64U);
  for (std::size_t i = 0; i < kept.size(); ++i) {
    EXPECT_EQ(kept[i].memory(), Memory::mapped);
    EXPECT_TRUE(same_elements(kept[i], row_value(schema[0], indices[i])));
  }
  EXPECT_THROW(kept[0].as<std::int32_t>(), Error);
}

}  // namespace
}  // namespace millrace
