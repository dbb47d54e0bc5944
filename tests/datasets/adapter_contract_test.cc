// What every data set that wraps others promises: each of its virtuals returns what the wrapped
// data set returns for the mapped index, in every epoch and through every composition of two
// adapters.
#include "media_samples.h"
#include "tests/reference.h"

#include <millrace/datasets/captions/tokenized_captions.h>
#include <millrace/datasets/compose/audio_text_pairs.h>
#include <millrace/datasets/compose/cached.h>
#include <millrace/datasets/folders/image_folder.h>
#include <millrace/decoders/text/tokenizer.h>
#include <millrace/pipeline/data/map.h>
#include <millrace/pipeline/data/mixture.h>
#include <millrace/pipeline/data/subset.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <ostream>
#include <set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace millrace {
namespace {

using Place = std::pair<int, std::int64_t>;  // leaf, and sample of the leaf

// What the leaves were asked to prefetch, and whether a leaf was given another index than its own.
struct Calls {
  std::mutex mutex;
  std::vector<Place> expected;
  bool wrong_context = false;

  std::vector<Place> take() {
    std::lock_guard lock(mutex);
    return std::exchange(expected, {});
  }
};

// A data set without adapters. Every virtual returns a number that tells leaf and index apart; the
// caption is "leaf/index", which every adapter keeps.
class Leaf : public Dataset {
 public:
  Leaf(int number, std::int64_t size, std::shared_ptr<Calls> calls)
      : number_(number), size_(size), calls_(std::move(calls)) {}

  std::int64_t size() const override { return size_; }
  const Schema& schema() const override { return schema_; }
  Status load(std::int64_t index, const LoadContext& context, Sample& sample) const override {
    if (context.index != index) calls_->wrong_context = true;
    std::ranges::fill(sample.resize("audio", {5}).as<float>(), 0.5F);
    sample.set_text("caption", std::to_string(number_) + "/" + std::to_string(index));
    return {};
  }
  std::string describe(std::int64_t index) const override {
    return "leaf " + std::to_string(number_) + "/" + std::to_string(index);
  }
  std::vector<LeftOut> left_out() const override {
    return {{"leaf " + std::to_string(number_), "left out on purpose"}};
  }
  std::int64_t samples_per_task() const override { return 9 - number_; }
  void expect(std::int64_t index, std::int64_t /*epoch*/ = 0) const noexcept override {
    std::lock_guard lock(calls_->mutex);
    calls_->expected.emplace_back(number_, index);
  }
  std::int64_t cost(std::int64_t index, std::int64_t /*epoch*/ = 0) const override {
    return 1000 * (number_ + 1) + index;
  }
  std::int64_t length(std::int64_t index, std::int64_t /*epoch*/ = 0) const override {
    return 100'000 * (number_ + 1) + index;
  }

 private:
  int number_;
  std::int64_t size_;
  std::shared_ptr<Calls> calls_;
  Schema schema_{{.name = "audio", .dtype = DType::float32, .shape = {-1}}, text_field("caption")};
};

using Parts = std::vector<AnyDataset>;

struct Kind {
  const char* name;
  AnyDataset (*make)(const Parts& parts, const std::filesystem::path& folder);
  bool takes_all = false;  // otherwise only the first part
  bool caches = false;     // may need no prefetch
  bool own_file = false;   // samples_per_task is that of its file
  bool own_names = false;  // describe() is its own
};

std::ostream& operator<<(std::ostream& out, const Kind& kind) {
  return out << kind.name;
}

AnyDataset make_subset(const Parts& parts, const std::filesystem::path&) {
  std::vector<std::int64_t> indices;
  for (std::int64_t i = parts[0]->size() - 1; i >= 0; i -= 2) indices.push_back(i);
  return Subset(parts[0], indices);
}
AnyDataset make_mixture(const Parts& parts, const std::filesystem::path&) {
  std::vector<Mixture::Part> weighted;
  for (const AnyDataset& part : parts) {
    weighted.push_back({part, 1.0 + static_cast<double>(weighted.size())});
  }
  return Mixture(std::move(weighted), {.size = 17});
}
AnyDataset make_map(const Parts& parts, const std::filesystem::path&) {
  return map(parts[0], [](Sample&, const LoadContext&) {});
}
AnyDataset make_map_between(const Parts& parts, const std::filesystem::path&) {
  Schema schema{{.name = "audio", .dtype = DType::float32, .shape = {-1}}, text_field("caption")};
  return map(parts[0], schema, [](const Sample& in, Sample& out, const LoadContext&) {
    out.set("audio", in["audio"].clone());
    out.set_text("caption", in.text("caption"));
  });
}
AnyDataset make_cached(const Parts& parts, const std::filesystem::path&) {
  return Cached(parts[0]);
}
AnyDataset make_cached_file(const Parts& parts, const std::filesystem::path& folder) {
  static int count = 0;
  return Cached(parts[0], {.file = folder / ("cache" + std::to_string(++count) + ".arrow")});
}
AnyDataset make_captions(const Parts& parts, const std::filesystem::path&) {
  return TokenizedCaptions(parts[0], {.tokenizer = byte_tokenizer()}, "caption");
}
AnyDataset make_pairs(const Parts& parts, const std::filesystem::path&) {
  return AudioTextPairs(parts[0], {.captions = {.tokenizer = byte_tokenizer()}});
}

const Kind kinds[] = {
    {.name = "Subset", .make = make_subset},
    {.name = "Mixture", .make = make_mixture, .takes_all = true, .own_names = true},
    {.name = "Map", .make = make_map},
    {.name = "MapBetween", .make = make_map_between},
    {.name = "Cached", .make = make_cached, .caches = true},
    {.name = "CachedFile", .make = make_cached_file, .caches = true, .own_file = true},
    {.name = "TokenizedCaptions", .make = make_captions},
    {.name = "AudioTextPairs", .make = make_pairs},
};

// A data set, and which leaves are below it.
struct Node {
  AnyDataset data;
  std::vector<int> leaves;
};

class AdapterContract : public testing::TestWithParam<std::tuple<Kind, Kind>> {
 protected:
  Node leaf(int number) { return {Leaf(number, 7 + 2 * number, calls_), {number}}; }
  Node wrap(const Kind& kind, const std::vector<Node>& nodes) {
    Parts parts;
    std::vector<int> leaves;
    for (const Node& node : nodes) {
      parts.push_back(node.data);
      if (parts.size() > 1 && !kind.takes_all) continue;
      leaves.insert(leaves.end(), node.leaves.begin(), node.leaves.end());
    }
    return {kind.make(parts, folder_.path()), leaves};
  }
  void check(const Node& node, const std::vector<Kind>& chain);
  void check_sample(const Dataset& data, std::int64_t index, std::int64_t epoch, bool caches,
                    bool own_names);

  TemporaryFolder folder_;
  std::shared_ptr<Calls> calls_ = std::make_shared<Calls>();
};

void AdapterContract::check_sample(const Dataset& data, std::int64_t index, std::int64_t epoch,
                                   bool caches, bool own_names) {
  calls_->take();
  data.expect(index, epoch);
  const std::vector<Place> expected = calls_->take();
  Sample sample(data.schema());
  const Status status = data.load(index, {.epoch = epoch, .index = index}, sample);
  ASSERT_TRUE(status.ok()) << status.error().what();
  const std::string caption(sample.text("caption"));
  const Place place{std::stoi(caption), std::stoll(caption.substr(caption.find('/') + 1))};
  const Leaf leaf(place.first, 100, calls_);
  EXPECT_EQ(data.cost(index, epoch), leaf.cost(place.second)) << caption;
  EXPECT_EQ(data.length(index, epoch), leaf.length(place.second)) << caption;
  if (!caches || !expected.empty()) {
    EXPECT_EQ(expected, std::vector<Place>{place}) << caption;
  }
  if (!own_names) {
    EXPECT_EQ(data.describe(index), leaf.describe(place.second));
  }
}

void AdapterContract::check(const Node& node, const std::vector<Kind>& chain) {
  const bool caches = std::ranges::any_of(chain, &Kind::caches);
  const bool own_names = std::ranges::any_of(chain, &Kind::own_names);
  ASSERT_GT(node.data->size(), 0);
  for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
    for (std::int64_t i = 0; i < node.data->size(); ++i) {
      SCOPED_TRACE("epoch " + std::to_string(epoch) + ", index " + std::to_string(i));
      check_sample(*node.data, i, epoch, caches, own_names);
    }
  }
  EXPECT_FALSE(calls_->wrong_context) << "load() was called with the index of an outer data set";
  std::vector<std::string> sources, left_out;
  std::int64_t per_task = 100;
  for (int number : node.leaves) {
    const Leaf leaf(number, 1, calls_);
    sources.push_back(leaf.left_out()[0].source);
    per_task = std::min(per_task, leaf.samples_per_task());
  }
  for (const LeftOut& entry : node.data->left_out()) left_out.push_back(entry.source);
  EXPECT_EQ(left_out, sources);
  if (!std::ranges::any_of(chain, &Kind::own_file)) {
    EXPECT_EQ(node.data->samples_per_task(), per_task);
  }
}

TEST_P(AdapterContract, EveryVirtualIsThatOfTheSampleInside) {
  const auto& [outer, inner] = GetParam();
  const Node first = wrap(inner, {leaf(0), leaf(1)});
  const Node second = wrap(inner, {leaf(2), leaf(3)});
  check(first, {inner});
  check(wrap(outer, {first, second}), {inner, outer});
}

INSTANTIATE_TEST_SUITE_P(Compositions, AdapterContract,
                         testing::Combine(testing::ValuesIn(kinds), testing::ValuesIn(kinds)),
                         [](const auto& test) {
                           return std::string(std::get<0>(test.param).name) + "Of" +
                                  std::get<1>(test.param).name;
                         });

// Adapter(AnyDataset) and the copy constructor both fit an adapter; it must be wrapped, not sliced.
class Wrapper : public Adapter {
 public:
  explicit Wrapper(const Subset& subset) : Adapter(subset) {}
};

TEST(Adapters, WrapAnAdapterWithItsOwnSizeAndIndices) {
  const Leaf leaf(0, 7, std::make_shared<Calls>());
  const Wrapper wrapper(Subset(leaf, {5, 2}));
  const Wrapper copy = wrapper;
  for (const Wrapper& one : {wrapper, copy}) {
    EXPECT_EQ(one.size(), 2);
    EXPECT_EQ(one.describe(0), leaf.describe(5));
    EXPECT_EQ(one.cost(1), leaf.cost(2));
  }
}

TEST(Adapters, KeepTheCostOfAFolderThroughASubsetOfAMixtureOfCaches) {
  TemporaryFolder folder;
  for (int i = 0; i < 12; ++i) {
    write_picture(folder / (i % 2 == 0 ? "a" : "b") / (std::to_string(i) + ".png"), i);
  }
  const ImageFolder a(folder / "a", {.size = 8}), b(folder / "b", {.size = 8});
  const Mixture mixed({{Cached(a), 1.0}, {Cached(b), 2.0}}, {.size = 9});
  const Subset subset(mixed, {8, 1, 4, 3});
  std::set<std::int64_t> costs;
  for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
    for (std::int64_t i = 0; i < subset.size(); ++i) {
      // A cache keeps the sample of its first epoch, but a folder has the same file in all.
      const auto choice = mixed.choose(subset.indices()[static_cast<std::size_t>(i)], epoch);
      const ImageFolder& from = choice.part == 0 ? a : b;
      const auto bytes = std::filesystem::file_size(from.files().path(choice.index));
      EXPECT_EQ(subset.cost(i, epoch), static_cast<std::int64_t>(bytes));
      costs.insert(subset.cost(i, epoch));
    }
  }
  EXPECT_GT(costs.size(), 3U);
}

}  // namespace
}  // namespace millrace
