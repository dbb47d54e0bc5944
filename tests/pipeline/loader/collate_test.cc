#include "tests/pipeline/numbers.h"
#include "tests/reference.h"

#include <millrace/pipeline/loader/loader.h>

#include <fstream>

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(Collate, PadsToTheLongestWithLengthsAndMask) {
  Loader loader(Numbers(10), {.batch_size = 4, .collate = {{"ragged", Collate::pad(-7)}}});
  auto batch = loader.next();
  const Array& ragged = (*batch)["ragged"];
  EXPECT_EQ(ragged.shape(), (Shape{4, 3}));
  auto values = ragged.as<const std::int32_t>();
  EXPECT_EQ(std::vector<std::int32_t>(values.begin(), values.end()),
            (std::vector<std::int32_t>{-7, -7, -7, 10, -7, -7, 20, 21, -7, 30, 31, 32}));
  auto lengths = batch->lengths("ragged").as<const std::int64_t>();
  EXPECT_EQ(std::vector<std::int64_t>(lengths.begin(), lengths.end()),
            (std::vector<std::int64_t>{0, 1, 2, 3}));
  Array mask = batch->mask("ragged");
  EXPECT_EQ(mask.shape(), (Shape{4, 3}));
  auto valid = mask.as<const bool>();
  EXPECT_EQ(std::vector<bool>(valid.begin(), valid.end()),
            (std::vector<bool>{0, 0, 0, 1, 0, 0, 1, 1, 0, 1, 1, 1}));
  EXPECT_THROW(batch->lengths("number"), Error);
  EXPECT_THROW(batch->list("ragged"), Error);
}

TEST(Collate, ListIsTheDefaultAndTextsAreStrings) {
  Loader loader(Numbers(10), {.batch_size = 3});
  auto batch = loader.next();
  EXPECT_EQ(batch->list("ragged").size(), 3U);
  EXPECT_EQ(batch->list("ragged")[2].shape(), (Shape{2}));
  EXPECT_EQ(batch->texts("name")[2], "n2");
  EXPECT_NE(message_of([&] { (*batch)["ragged"]; }).find("is kept as a list"), std::string::npos);
  EXPECT_NE(message_of([&] { batch->texts("number"); }).find("is not a text field"),
            std::string::npos);
  EXPECT_NE(message_of([&] { (*batch)["colour"]; }).find("there is no field 'colour'"),
            std::string::npos);
}

TEST(Collate, StackRefusesDifferentShapesAndNamesThem) {
  Loader loader(Numbers(10), {.batch_size = 4, .collate = {{"ragged", Collate::stack()}}});
  std::string message = message_of([&] { loader.next(); });
  EXPECT_NE(message.find("field 'ragged': stack needs samples of one shape, but this batch has [0] "
                         "and [1]"),
            std::string::npos)
      << message;
}

TEST(Collate, PadToRefusesWhatIsLarger) {
  LoaderOptions options{.batch_size = 5, .collate = {{"ragged", Collate::pad_to({4}, 9)}}};
  Loader loader(Numbers(10), options);
  EXPECT_EQ((*loader.next())["ragged"].shape(), (Shape{5, 4}));
  options.collate = {{"ragged", Collate::pad_to({3})}};
  Loader narrow(Numbers(10), options);
  EXPECT_NE(message_of([&] { narrow.next(); }).find("larger than it is padded to"),
            std::string::npos);
}

// Random ragged arrays of up to three axes and every type, collated here and by numpy.
struct Case {
  Collate policy;
  const char* python;  // an expression for the collated shape, over the list `shapes`
};

class AgainstNumpy : public testing::TestWithParam<int> {};

TEST_P(AgainstNumpy, EveryPolicyTypeAndRank) {
  Random random(static_cast<std::uint64_t>(GetParam()), 0, 0, "collate test");
  TemporaryFolder folder;
  const DType types[] = {DType::uint8,   DType::int16,   DType::int32,   DType::int64,
                         DType::float32, DType::float64, DType::boolean, DType::float16};
  DType dtype = types[GetParam() % 8];
  int rank = 1 + static_cast<int>(random.below(3));
  bool shrink = GetParam() % 3 == 1, one_axis = GetParam() % 3 != 0;
  int axis = static_cast<int>(random.below(rank));
  Shape declared, base;
  for (int i = 0; i < rank; ++i) {
    declared.push_back(one_axis && i != axis ? 3 : -1);
    base.push_back(3);
  }
  Collate policy = shrink     ? Collate::curtail_to_shortest(axis)
                   : one_axis ? Collate::pad_to_longest(axis, 1)
                              : Collate::pad(1);
  Field field{.name = "x", .dtype = dtype, .shape = declared};
  std::vector<Array> rows;
  std::ofstream shapes(folder / "shapes"), data(folder / "data", std::ios::binary);
  for (int r = 0; r < 6; ++r) {
    Shape shape = base;
    for (int i = 0; i < rank; ++i) {
      if (declared[i] < 0) shape[i] = random.below(6) + (shrink ? 1 : 0);
      shapes << shape[i] << ' ';
    }
    shapes << '\n';
    rows.push_back(Array::empty(dtype, shape));
    for (std::size_t b = 0; b < rows.back().bytes(); ++b) {
      auto value = static_cast<std::uint8_t>(random.below(2));
      rows.back().data()[b] = static_cast<std::byte>(value);
    }
    data.write(reinterpret_cast<const char*>(rows.back().data()),
               static_cast<std::streamsize>(rows.back().bytes()));
  }
  shapes.close();
  data.close();
  Shape out_shape = collated_shape(field, policy, rows);
  Array out = Array::empty(dtype, out_shape);
  collate_into(policy, rows, out);
  std::string expected = run_python(
      R"(
import sys, numpy as np
folder, dtype, shrink = sys.argv[1], np.dtype(sys.argv[2]), sys.argv[3] == '1'
shapes = [tuple(map(int, line.split())) for line in open(folder + '/shapes')]
raw, at, rows = open(folder + '/data', 'rb').read(), 0, []
for s in shapes:
    n = int(np.prod(s)) * dtype.itemsize
    rows.append(np.frombuffer(raw[at:at + n], dtype).reshape(s)); at += n
size = (np.min if shrink else np.max)(np.array(shapes), axis=0)
out = np.ones((len(rows), *size), dtype)
for o, r in zip(out, rows):
    common = tuple(slice(0, min(a, b)) for a, b in zip(o.shape, r.shape))
    o[common] = r[common]
sys.stdout.buffer.write(out.tobytes())
)",
      folder.path().string() + " " + std::string(name_of(dtype)) + (shrink ? " 1" : " 0"));
  std::string actual(reinterpret_cast<const char*>(out.data()), out.bytes());
  EXPECT_EQ(actual.size(), expected.size()) << to_string(out);
  EXPECT_TRUE(actual == expected) << to_string(out);
}

INSTANTIATE_TEST_SUITE_P(Collate, AgainstNumpy, testing::Range(0, 24));

TEST(Collate, SeveralVaryingAxesHaveLengthsPerAxis) {
  Field field{.name = "x", .dtype = DType::uint8, .shape = {-1, 2, -1}};
  std::vector<Array> rows{Array::empty(DType::uint8, {1, 2, 5}),
                          Array::empty(DType::uint8, {4, 2, 3})};
  Shape shape = collated_shape(field, Collate::pad(), rows);
  EXPECT_EQ(shape, (Shape{2, 4, 2, 5}));
  Array lengths = collated_lengths(field, rows, shape);
  EXPECT_EQ(lengths.shape(), (Shape{2, 2}));
  auto values = lengths.as<std::int64_t>();
  EXPECT_EQ(std::vector<std::int64_t>(values.begin(), values.end()),
            (std::vector<std::int64_t>{1, 5, 4, 3}));
}

// numpy's float32 multiply and add, two roundings: equal to the bit for every value and channel.
TEST(ToFloat, EqualsNumpyToTheBit) {
  for (int channels : {1, 2, 3, 4}) {
    for (std::int64_t pixels : {1, 7, 31, 32, 257}) {
      for (bool first : {true, false}) {
        ToFloat conversion{.scale = {1.0F / 255, 0.0171247F, 1.7F, 0.3F},
                           .shift = {-0.1F, -2.1179F, 0.5F, 1e-3F},
                           .channels_first = first};
        auto n = static_cast<std::size_t>(pixels * channels);
        std::vector<std::uint8_t> from(n);
        for (std::size_t i = 0; i < n; ++i) from[i] = static_cast<std::uint8_t>(i * 37 + 11);
        std::vector<float> to(n, -1);
        to_float(conversion, from.data(), pixels, channels, to.data());
        for (std::int64_t p = 0; p < pixels; ++p) {
          for (int c = 0; c < channels; ++c) {
            auto k = static_cast<std::size_t>(c);
            volatile float product =
                static_cast<float>(from[static_cast<std::size_t>(p * channels + c)]) *
                conversion.scale[k];
            float expected = product + conversion.shift[k];
            ASSERT_EQ(to[static_cast<std::size_t>(first ? c * pixels + p : p * channels + c)],
                      expected);
          }
        }
      }
    }
  }
  std::string expected = run_python(R"(
import sys, numpy as np
x = np.arange(256, dtype=np.uint8).astype(np.float32)
sys.stdout.buffer.write((x * np.float32(0.0171247) + np.float32(-2.1179)).tobytes())
)");
  std::vector<std::uint8_t> all(256);
  for (std::size_t i = 0; i < 256; ++i) all[i] = static_cast<std::uint8_t>(i);
  std::vector<float> to(256);
  to_float({.scale = {0.0171247F}, .shift = {-2.1179F}}, all.data(), 256, 1, to.data());
  EXPECT_TRUE(std::string(reinterpret_cast<const char*>(to.data()), 1024) == expected);
}

class Gradient : public Dataset {
 public:
  std::int64_t size() const override { return 20; }
  const Schema& schema() const override { return schema_; }
  Status load(std::int64_t index, const LoadContext&, Sample& sample) const override {
    auto pixels = sample.out("image").as<std::uint8_t>();
    for (std::size_t i = 0; i < pixels.size(); ++i) {
      pixels[i] = static_cast<std::uint8_t>(static_cast<std::size_t>(index) + i);
    }
    return {};
  }
  Schema schema_{{.name = "image", .dtype = DType::uint8, .shape = {2, 4, 5, 3}}};
};

TEST(ToFloat, ConvertsInTheLoaderWithChannelsFirst) {
  Loader loader(Gradient(),
                {.batch_size = 4, .threads = 2, .to_float = {{"image", ToFloat::unit()}}});
  for (const Batch& batch : loader) {
    const Array& image = batch["image"];
    ASSERT_EQ(image.shape(), (Shape{4, 3, 2, 4, 5}));
    auto values = image.as<const float>();
    for (std::size_t row = 0; row < 4; ++row) {
      for (std::size_t c = 0; c < 3; ++c) {
        for (std::size_t p = 0; p < 40; ++p) {
          auto raw = static_cast<std::size_t>(batch.indices()[row]) + p * 3 + c;
          EXPECT_EQ(values[row * 120 + c * 40 + p], static_cast<float>(raw) * (1.0F / 255));
        }
      }
    }
  }
  ToFloat normal = ToFloat::normalised({0.5F, 0.5F, 0.5F}, {0.25F, 0.25F, 0.25F});
  EXPECT_FLOAT_EQ(255 * normal.scale[0] + normal.shift[0], 2.0F);
}

}  // namespace
}  // namespace millrace
