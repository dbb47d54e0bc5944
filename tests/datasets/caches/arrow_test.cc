// The Arrow that tools/setup.sh takes out of pyarrow's wheel works from C++, and Python's own Arrow
// reads what it writes.
#include "tests/reference.h"

#include <arrow/api.h>
#include <arrow/io/file.h>
#include <arrow/ipc/writer.h>
#include <gtest/gtest.h>

namespace millrace {
namespace {

arrow::Status write_numbers(const std::string& path) {
  arrow::Int64Builder builder;
  for (std::int64_t i = 0; i < 100; ++i) ARROW_RETURN_NOT_OK(builder.Append(i * i));
  ARROW_ASSIGN_OR_RAISE(auto values, builder.Finish());
  auto schema = arrow::schema({arrow::field("square", arrow::int64())});
  ARROW_ASSIGN_OR_RAISE(auto file, arrow::io::FileOutputStream::Open(path));
  ARROW_ASSIGN_OR_RAISE(auto writer, arrow::ipc::MakeFileWriter(file, schema));
  ARROW_RETURN_NOT_OK(writer->WriteRecordBatch(*arrow::RecordBatch::Make(schema, 100, {values})));
  ARROW_RETURN_NOT_OK(writer->Close());
  return file->Close();
}

TEST(Arrow, WritesWhatPyarrowReads) {
  TemporaryFolder folder;
  std::string path = (folder / "numbers.arrow").string();
  arrow::Status status = write_numbers(path);
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(run_python(R"(
import sys, pyarrow as pa
table = pa.ipc.open_file(pa.memory_map(sys.argv[1])).read_all()
print(table['square'].to_pylist() == [i * i for i in range(100)])
)",
                       path),
            "True\n");
}

}  // namespace
}  // namespace millrace
