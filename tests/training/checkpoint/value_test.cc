// Values and stored tensors without LibTorch, through a file and back.
#include "tests/reference.h"
#include "tests/training/checkpoint/checkpoint_samples.h"

#include <ctime>
#include <limits>
#include <memory>
#include <thread>

namespace millrace {
namespace {

TEST(Value, GivesBackWhatWasWritten) {
  TemporaryFolder folder;
  write_checkpoint(folder / "a.pt", Dict{{"none", Value()},
                                         {"yes", true},
                                         {"large", std::int64_t{1} << 62},
                                         {"lowest", std::numeric_limits<std::int64_t>::min()},
                                         {"real", 0.1},
                                         {"text", "Mühle ✓"},
                                         {"bytes", PickleBytes{std::string("\x00\x7f\x80\xff", 4)}},
                                         {"list", List{{1, "two", 3.5, List{}, Tuple{}, Dict{}}}},
                                         {"numbered", Dict{{0, "zero"}, {7, "seven"}}}});
  const Value got = read_checkpoint(folder / "a.pt");
  EXPECT_TRUE(got["none"].is_none());
  EXPECT_TRUE(got["yes"].as_bool());
  EXPECT_EQ(got["large"].as_int(), std::int64_t{1} << 62);
  EXPECT_EQ(got["lowest"].as_int(), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(got["real"].as_double(), 0.1);
  EXPECT_EQ(got["text"].as_string(), "Mühle ✓");
  EXPECT_EQ(got["bytes"].as_bytes(), std::string("\x00\x7f\x80\xff", 4));
  EXPECT_TRUE(got["list"].as_list()[4].is<Tuple>());
  EXPECT_EQ(got["numbered"].as_dict().find(7)->as_string(), "seven");
  EXPECT_EQ(got["numbered"].as_dict().find(1), nullptr);
}

TEST(Value, SaysWhatItIsInstead) {
  const Value value = Dict{{"step", "twelve"}};
  auto message = [](auto call) -> std::string {
    try {
      call();
      return "nothing thrown";
    } catch (const Error& error) {
      return error.what();
    }
  };
  EXPECT_EQ(message([&] { value["step"].as_int(); }), "expected an integer, found a string");
  EXPECT_EQ(message([&] { value["lr"]; }), "there is no 'lr' among the 1 entries (step)");
  EXPECT_EQ(message([&] { value["step"]["x"]; }), "expected a dictionary, found a string");
  EXPECT_EQ(message([&] { value.as_stored_tensor(); }), "expected a tensor, found a dictionary");
}

TEST(Value, KeepsThePlaceOfAKeyThatIsSetAgain) {
  Dict dict{{"a", 1}, {5, 2}, {"b", 3}};
  dict.set("a", 10);
  dict.set(5, 20);
  EXPECT_EQ(dict.size(), 3U);
  EXPECT_EQ(dict.begin()->second.as_int(), 10);
  EXPECT_EQ((dict.begin() + 1)->second.as_int(), 20);
}

// Optimizers may number their parameters in any order, and a hostile file may choose any numbers.
TEST(Value, FindsIntegersQuicklyInAnyOrder) {
  const std::clock_t start = std::clock();  // processor time: other programs do not count
  Dict dict;
  for (std::int64_t i = 100'000; i > 0; --i) dict.set(i * 103'049, i);
  for (std::int64_t i = 1; i <= 100'000; ++i) ASSERT_EQ(dict.find(i * 103'049)->as_int(), i);
  EXPECT_LT((std::clock() - start) / CLOCKS_PER_SEC, 10);
}

TEST(StoredTensor, KeepsViewsAndSharedStorages) {
  const StoredTensor base =
      tensor_of(ElementType::int32, {2, 3}, std::vector<std::int32_t>{0, 1, 2, 3, 4, 5});
  StoredTensor column = base;
  column.sizes = {2};
  column.strides = {3};
  column.offset = 2;
  StoredTensor as_floats = base;
  as_floats.type = ElementType::float32;
  TemporaryFolder folder;
  write_checkpoint(folder / "a.pt",
                   Dict{{"base", base},
                        {"transposed", transposed(base)},
                        {"column", column},
                        {"as_floats", as_floats},
                        {"empty", StoredTensor::row_major(ElementType::float16, {0, 4})}});
  const Value got = read_checkpoint(folder / "a.pt");
  const auto& read = got["base"].as_stored_tensor();
  EXPECT_EQ(elements_of<std::int32_t>(read), (std::vector<std::int32_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(elements_of<std::int32_t>(got["transposed"].as_stored_tensor()),
            (std::vector<std::int32_t>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(elements_of<std::int32_t>(got["column"].as_stored_tensor()),
            (std::vector<std::int32_t>{2, 5}));
  EXPECT_EQ(got["as_floats"].as_stored_tensor().type, ElementType::float32);
  EXPECT_EQ(got["empty"].as_stored_tensor().sizes, (std::vector<std::int64_t>{0, 4}));
  EXPECT_EQ(got["empty"].as_stored_tensor().strides, (std::vector<std::int64_t>{4, 1}));
  for (const char* name : {"transposed", "column", "as_floats"}) {
    EXPECT_EQ(got[name].as_stored_tensor().storage.data(), read.storage.data()) << name;
  }
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(read.storage.data()) % 64, 0U);
}

TEST(StoredTensor, KeepsEveryTypeAndTheFlagsOfLazyViews) {
  Dict dict;
  for (int i = 0; i <= static_cast<int>(ElementType::float4_e2m1fn_x2); ++i) {
    const auto type = static_cast<ElementType>(i);
    StoredTensor tensor = StoredTensor::row_major(type, {3});
    std::memset(tensor.storage.data(), i, tensor.storage.size());
    tensor.conjugated = is_complex(type);
    tensor.negated = i % 2 == 1;
    dict.set(std::string(name_of(type)), tensor);
  }
  EXPECT_EQ(dict.size(), 22U);
  TemporaryFolder folder;
  write_checkpoint(folder / "a.pt", dict);
  const Value got = read_checkpoint(folder / "a.pt");
  for (const auto& [name, value] : dict) {
    const StoredTensor& want = value.as_stored_tensor();
    const StoredTensor& read = got[name.as_string()].as_stored_tensor();
    EXPECT_EQ(read.type, want.type) << name.as_string();
    EXPECT_EQ(read.conjugated, want.conjugated) << name.as_string();
    EXPECT_EQ(read.negated, want.negated) << name.as_string();
    ASSERT_EQ(read.storage.size(), want.storage.size()) << name.as_string();
    EXPECT_EQ(std::memcmp(read.storage.data(), want.storage.data(), want.storage.size()), 0);
  }
}

TEST(StoredTensor, BorrowsMemoryAndKeepsItAlive) {
  auto memory = std::make_shared<std::vector<float>>(4, 2.5F);
  const std::weak_ptr<std::vector<float>> watch = memory;
  {
    const StoredTensor tensor{.type = ElementType::float32,
                              .sizes = {4},
                              .strides = {1},
                              .storage = TensorStorage::borrow(memory->data(), 16, memory)};
    memory.reset();
    TemporaryFolder folder;
    write_checkpoint(folder / "a.pt", tensor);
    EXPECT_EQ(elements_of<float>(read_checkpoint(folder / "a.pt").as_stored_tensor()),
              std::vector<float>(4, 2.5F));
    EXPECT_FALSE(watch.expired());
  }
  EXPECT_TRUE(watch.expired());
}

TEST(StoredTensor, ThatDoesNotFitItsStorageIsNotWritten) {
  TemporaryFolder folder;
  StoredTensor tensor = StoredTensor::row_major(ElementType::float32, {4});
  std::memset(tensor.storage.data(), 0, 16);
  tensor.sizes = {5};
  EXPECT_THROW(write_checkpoint(folder / "a.pt", tensor), Error);
  tensor.sizes = {4, 4};
  EXPECT_THROW(write_checkpoint(folder / "a.pt", tensor), Error);
  EXPECT_THROW(StoredTensor::row_major(ElementType::float32, {-1}), Error);
  EXPECT_THROW(
      StoredTensor::row_major(ElementType::float32, {std::int64_t{1} << 40, std::int64_t{1} << 40}),
      Error);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

// The reader has no state outside of its objects; the thread sanitizer watches.
TEST(Value, IsReadAndWrittenByManyThreads) {
  TemporaryFolder folder;
  write_checkpoint(folder / "a.pt", sample_checkpoint());
  const Value shared = read_checkpoint(folder / "a.pt");
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      const auto path = folder / (std::to_string(i) + ".pt");
      for (int round = 0; round < 5; ++round) {
        EXPECT_TRUE(is_sample_checkpoint(read_checkpoint(folder / "a.pt")));
        write_checkpoint(path, shared);
        EXPECT_TRUE(is_sample_checkpoint(read_checkpoint(path)));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace millrace
