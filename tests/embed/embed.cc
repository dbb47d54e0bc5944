// Sums the rows of a loader that runs on the program's own executor, beside other tasks.
#include <millrace/datasets/compose/generated.h>
#include <millrace/pipeline/data/subset.h>
#include <millrace/pipeline/loader/loader.h>

#include <atomic>
#include <cstdio>
#include <memory>

#include <taskflow/taskflow.hpp>

namespace {

class Squares : public millrace::Dataset {
 public:
  std::int64_t size() const override { return 1000; }
  const millrace::Schema& schema() const override { return schema_; }
  millrace::Status load(std::int64_t index, const millrace::LoadContext&,
                        millrace::Sample& sample) const override {
    sample.out("square").as<std::int64_t>()[0] = index * index;
    sample.set_text("name", "number " + std::to_string(index));
    return {};
  }

 private:
  millrace::Schema schema_{{.name = "square", .dtype = millrace::DType::int64, .shape = {}},
                           millrace::text_field("name")};
};

}  // namespace

int main() {
  tf::Executor executor(2);
  auto pool = std::make_shared<millrace::Pool>(executor);
  std::atomic<int> own_work{0};
  executor.silent_async([&] { ++own_work; });

  auto [train, valid] = millrace::random_split(Squares(), {.valid_fraction = 0.1, .seed = 42});
  std::int64_t sum = 0, rows = 0;
  for (const auto& part : {train, valid}) {
    millrace::Loader loader(part, {.batch_size = 32, .shuffle = true, .pool = pool});
    for (const millrace::Batch& batch : loader) {
      for (std::int64_t square : batch["square"].as<const std::int64_t>()) sum += square;
      rows += batch.size();
    }
  }
  millrace::Loader pictures(
      millrace::GeneratedImages({.count = 64, .shape = {16, 16, 3}}),
      {.batch_size = 16, .pool = pool, .to_float = {{"image", millrace::ToFloat::unit()}}});
  for (const millrace::Batch& batch : pictures) rows += batch.size();
  executor.wait_for_all();

  std::printf("%lld rows, sum %lld, own work %d\n", static_cast<long long>(rows),
              static_cast<long long>(sum), own_work.load());
  return rows == 1064 && sum == 332833500 && own_work == 1 ? 0 : 1;
}
