// Sounds with texts out of other data sets, and captions out of an Arrow table.
#include "tests/datasets/media_samples.h"
#include "tests/reference.h"

#include <millrace/datasets/compose/audio_text_pairs.h>
#include <millrace/datasets/compose/cached.h>

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace millrace {
namespace {

// Three samples, made by a function.
class Made : public Dataset {
 public:
  using Fill = std::function<void(std::int64_t, Sample&)>;
  Made(Schema schema, Fill fill) : schema_(std::move(schema)), fill_(std::move(fill)) {}
  std::int64_t size() const override { return 3; }
  const Schema& schema() const override { return schema_; }
  Status load(std::int64_t index, const LoadContext&, Sample& sample) const override {
    fill_(index, sample);
    return {};
  }

 private:
  Schema schema_;
  Fill fill_;
};

const Field sound_field{.name = "wavs", .dtype = DType::float32, .shape = {-1}};

void fill_sound(Sample& sample, std::int64_t length) {
  const auto sound = sample.resize("wavs", {length}).as<float>();
  for (std::size_t i = 0; i < sound.size(); ++i) sound[i] = static_cast<float>(i + 1);
}

// Sounds that count 1, 2, 3 ... up to 100, 7 and 0 samples.
Made counting() {
  return {
      Schema{sound_field, text_field("raw_texts")}, [](std::int64_t index, Sample& sample) {
        fill_sound(sample, std::array<std::int64_t, 3>{100, 7, 0}[static_cast<std::size_t>(index)]);
        sample.set_text("raw_texts", "sound " + std::to_string(index));
      }};
}

AudioTextOptions windows(AudioWindow window) {
  return {.samples = 10, .window = window, .captions = {.tokenizer = byte_tokenizer()}};
}

std::vector<float> sound_of(const Dataset& pairs, std::int64_t index, std::int64_t epoch) {
  Sample sample(pairs.schema());
  const Status status = pairs.load(index, {.seed = 1, .epoch = epoch, .index = index}, sample);
  EXPECT_TRUE(status.ok());
  const auto sound = sample["audio"].as<const float>();
  return {sound.begin(), sound.end()};
}

std::string refusal(const Schema& schema, AudioTextOptions options = {}) {
  if (!options.captions.tokenizer) options.captions.tokenizer = byte_tokenizer();
  try {
    AudioTextPairs(Made(schema, [](std::int64_t, Sample&) {}), options);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.what();
  }
  return "nothing was thrown";
}

TEST(AudioTextPairs, CutsWindowsByEpochAndFillsShortOnesUp) {
  const AudioTextPairs pairs(counting(), windows(AudioWindow::random));
  std::set<float> starts;
  for (std::int64_t epoch = 0; epoch < 20; ++epoch) {
    const std::vector<float> sound = sound_of(pairs, 0, epoch);
    ASSERT_EQ(sound.size(), 10U);
    for (std::size_t i = 1; i < 10; ++i) EXPECT_EQ(sound[i], sound[0] + static_cast<float>(i));
    EXPECT_EQ(sound, sound_of(pairs, 0, epoch));  // the same whoever asks
    starts.insert(sound[0]);
  }
  EXPECT_GT(starts.size(), 8U);
  EXPECT_EQ(sound_of(pairs, 1, 0), (std::vector<float>{1, 2, 3, 4, 5, 6, 7, 0, 0, 0}));
  const AudioTextPairs first(counting(), windows(AudioWindow::first));
  EXPECT_EQ(sound_of(first, 0, 5)[0], 1);
}

TEST(AudioTextPairs, ASoundWithoutSamplesIsAnErrorOfItsSample) {
  const AudioTextPairs pairs(counting(), windows(AudioWindow::random));
  Sample sample(pairs.schema());
  try {
    const Status status = pairs.load(2, {.index = 2}, sample);
    FAIL() << "it was loaded";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("the sound has 0 samples, fewer than 1"),
              std::string::npos);
  }
}

// Either way round: few frequencies are no reason to leave one out.
TEST(AudioTextPairs, MeasuresSpectrogramsAlongTime) {
  for (const int times : {0, 1}) {
    auto shape = [times](std::int64_t count) {
      return times == 0 ? Shape{count, 4} : Shape{4, count};
    };
    const Made spectrograms(Schema{{.name = "audio", .dtype = DType::float32, .shape = shape(-1)},
                                   text_field("caption")},
                            [shape](std::int64_t index, Sample& one) {
                              const auto values =
                                  one.resize("audio", shape(index == 0 ? 9 : 7)).as<float>();
                              std::iota(values.begin(), values.end(), 0.0F);
                              one.set_text("caption", "noise");
                            });
    const AudioTextPairs pairs(spectrograms, {.spectrograms = true,
                                              .times = times,
                                              .samples = 5,  // of sounds alone
                                              .min_samples = 8,
                                              .captions = {.tokenizer = byte_tokenizer()}});
    Sample sample(pairs.schema());
    ASSERT_TRUE(pairs.load(0, {}, sample).ok());
    EXPECT_EQ(sample["audio"].shape(), shape(9));
    EXPECT_EQ(sample["audio"].as<const float>()[35], 35);
    try {
      const Status status = pairs.load(1, {.index = 1}, sample);
      FAIL() << "it was loaded";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("has 7 times, fewer than 8"), std::string::npos);
    }
  }
}

TEST(AudioTextPairs, GivesTokensOfTextsOrThoseThatAreThere) {
  const AudioTextPairs pairs(counting(), windows(AudioWindow::first));
  Sample sample(pairs.schema());
  ASSERT_TRUE(pairs.load(0, {}, sample).ok());
  EXPECT_EQ(sample.text("caption"), "sound 0");
  EXPECT_EQ(sample["tokens"].as<const std::int64_t>()[0], 's' + 1);
  const Made ready(Schema{sound_field, {.name = "texts", .dtype = DType::int64, .shape = {5}}},
                   [](std::int64_t, Sample& one) {
                     fill_sound(one, 12);
                     std::ranges::copy(std::array<std::int64_t, 5>{9, 0, 8, 0, 0},
                                       one.out("texts").as<std::int64_t>().begin());
                   });
  const AudioTextPairs given(ready, {.samples = 10, .captions = {.max_tokens = 3}});
  Sample other(given.schema());
  ASSERT_TRUE(given.load(0, {}, other).ok());
  const auto tokens = other["tokens"].as<const std::int64_t>();
  EXPECT_EQ(std::vector(tokens.begin(), tokens.end()), (std::vector<std::int64_t>{9, 0, 8}));
}

TEST(AudioTextPairs, SaysWhichFieldIsMissingAmbiguousOrOfAnotherType) {
  const Field text = text_field("caption");
  EXPECT_NE(refusal({text}).find("'wavs' needs a field 'audio' or 'wavs' or 'wav' (float32"),
            std::string::npos);
  EXPECT_NE(refusal({sound_field}).find("no text for its sounds"), std::string::npos);
  EXPECT_NE(refusal({sound_field, {.name = "audio", .dtype = DType::float32, .shape = {4}}, text})
                .find("it must have only one of them"),
            std::string::npos);
  for (const DType wrong : {DType::int16, DType::float64}) {
    EXPECT_NE(refusal({{.name = "audio", .dtype = wrong, .shape = {-1}}, text})
                  .find("'wavs' must be float32 with 1 axes, but the field 'audio'"),
              std::string::npos);
  }
  EXPECT_NE(refusal({{.name = "audio", .dtype = DType::float32, .shape = {2, -1}}, text})
                .find("must be float32 with 1 axes"),
            std::string::npos);
  EXPECT_NE(refusal({sound_field, text}, {.spectrograms = true}).find("float32 with 2 axes"),
            std::string::npos);
  EXPECT_NE(refusal({sound_field, {.name = "tokens", .dtype = DType::int32, .shape = {-1}}})
                .find("'texts' must be int64"),
            std::string::npos);
}

TEST(AudioFolder, TakesCaptionsFromAnArrowTable) {
  TemporaryFolder folder;
  for (int i = 0; i < 3; ++i) write_sound(folder / "sounds" / (std::to_string(i) + ".wav"), i);
  const Made rows(Schema{text_field("path"), text_field("caption")},
                  [](std::int64_t index, Sample& sample) {
                    sample.set_text("path", std::to_string(2 - index) + ".wav");
                    sample.set_text("caption", "row " + std::to_string(index));
                  });
  const Cached written(rows, {.file = folder / "captions.arrow"});
  const AudioFolder sounds(folder / "sounds", {.samples = 100, .table = folder / "captions.arrow"});
  ASSERT_EQ(sounds.size(), 3);
  Sample sample(sounds.schema());
  ASSERT_TRUE(sounds.load(0, {}, sample).ok());
  EXPECT_EQ(sample.text("caption"), "row 0");
  EXPECT_EQ(sounds.path(0).filename(), "2.wav");
  EXPECT_THROW(AudioFolder(folder / "sounds",
                           {.table = folder / "captions.arrow", .caption_column = "words"}),
               Error);
}

}  // namespace
}  // namespace millrace
