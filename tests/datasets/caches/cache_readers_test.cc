// Readers that are not Arrow's own library, or that ask more of a file than to be read: Hugging
// Face's datasets and polars open what was written here, and every value is compared.
#include "cache_rows.h"
#include "tests/reference.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

const Schema schema{{.name = "image", .dtype = DType::uint8, .shape = {4, 4, 3}},
                    {.name = "label", .dtype = DType::int64, .shape = {}},
                    {.name = "tokens", .dtype = DType::int32, .shape = {-1}},
                    {.name = "vertices", .dtype = DType::float32, .shape = {-1, 3}},
                    {.name = "encoded", .dtype = DType::uint8, .shape = {-1}},
                    text_field("caption")};

const char* const compare = R"(
def compare(name, column):
    fields = {'image': ([4, 4, 3], 'uint8'), 'label': ([], 'int64'), 'tokens': ([-1], 'int32'),
              'vertices': ([-1, 3], 'float32')}
    column = list(column)
    assert len(column) == 108, len(column)
    for value, index in zip(column, good(120)):
        if name == 'caption': want = 'text %d é' % index
        elif name == 'source': want = 'folder/file %d.png' % index
        elif name == 'encoded': want = expected(index, varied(index, [-1]), 'uint8').tobytes()
        else:
            shape, dtype = fields[name]
            want = expected(index, varied(index, shape), dtype).reshape(-1).tolist()
            want = want if shape else want[0]
            value = value if not shape else list(value)
        assert value == want, (name, index, value, want)
names = ['image', 'label', 'tokens', 'vertices', 'encoded', 'caption', 'source']
)";

class Readers : public testing::TestWithParam<int> {
 protected:
  Readers() {
    write_cache(path_, schema, 120,
                {.zstd_level = GetParam(), .shard_rows = 25, .binary = {"encoded"}}, true);
  }
  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "x.arrow";
};

TEST_P(Readers, PolarsReadsEveryValue) {
  EXPECT_EQ(run_python(std::string(python_rows) + compare + R"(
import polars
frame = polars.read_ipc(sys.argv[1])
for name in names: compare(name, frame[name].to_list())
lazy = polars.scan_ipc(sys.argv[1]).select(polars.col('label').sum()).collect().item()
assert lazy == sum(int(expected(i, [], 'int64')) for i in good(120))
print('equal')
)",
                       path_.string()),
            "equal\n");
}

TEST_P(Readers, HuggingFaceDatasetsReadEveryValue) {
  EXPECT_EQ(run_python(std::string(python_rows) + compare + R"(
import os
os.environ.update(HF_HOME=sys.argv[2], HF_DATASETS_OFFLINE='1', HF_HUB_OFFLINE='1')
import datasets
datasets.disable_progress_bars()
rows = datasets.load_dataset('arrow', data_files=sys.argv[1], split='train', cache_dir=sys.argv[2])
for name in names: compare(name, rows[name])
assert rows[5]['image'] == expected(good(120)[5], [48], 'uint8').tolist()
images = rows.with_format('numpy')[:]['image']
assert images.shape == (108, 48)  # in int64, as they like it
assert rows.features['image'].length == 48 and rows.features['image'].feature.dtype == 'uint8'
print('equal')
)",
                       path_.string() + " " + (folder_ / "hf").string()),
            "equal\n");
}

INSTANTIATE_TEST_SUITE_P(PlainAndZstd, Readers, testing::Values(0, 3));

}  // namespace
}  // namespace millrace
