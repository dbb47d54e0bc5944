// Tests MuLaN: loss, batches split over ranks, retrieval, and folders with unreadable files.
#include "tests/training/programs/trainer_programs.h"

#include <millrace/training/checkpoint/checkpoint.h>
#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/mulan/mulan_stage.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include <c10/util/StringUtil.h>
#include <nlohmann/json.hpp>

namespace millrace {
namespace {

MulanConfig tiny_mulan() {
  MulanConfig config{.dim_latent = 6};
  config.audio.dim = config.text.dim = 8;
  config.audio.depth = config.text.depth = 1;
  config.audio.heads = config.text.heads = 2;
  config.audio.dim_head = config.text.dim_head = 4;
  config.audio.patch_size = {8, 8};
  config.audio.spec_n_fft = 32;
  config.audio.spec_aug_freq_mask = config.audio.spec_aug_time_mask = 6;
  config.text.num_tokens = 20;
  return config;
}

torch::Tensor unit_rows(std::int64_t rows, std::int64_t dim) {
  const torch::Tensor x = torch::randn({rows, dim});
  return x / x.norm(2, 1, true);
}

torch::Tensor temperature_of(Mulan& model) {
  return model->named_parameters()["contrast.temperatures"];
}

// The Python package's formula, without log-sum-exp, in 64 bits.
double by_exponentials(const MulanLatents& latents, double temperature, bool decoupled) {
  const torch::Tensor near =
      latents.audio.to(torch::kFloat64).matmul(latents.text.to(torch::kFloat64).t()) *
      std::exp(temperature);
  torch::Tensor all = near.exp();
  const torch::Tensor own = all.diagonal().clone();
  if (decoupled) all = all * (1 - torch::eye(all.size(0), torch::kFloat64));
  return (-own.log() + 0.5 * (all.sum(1).log() + all.sum(0).log())).mean().item<double>();
}

TEST(Mulan, LossIsThePackagesAndStaysFinite) {
  torch::manual_seed(1);
  for (const bool decoupled : {false, true}) {
    MulanConfig config = tiny_mulan();
    config.decoupled_contrastive_learning = decoupled;
    Mulan model(config);
    const torch::NoGradGuard no_grad;
    const MulanLatents latents{.audio = unit_rows(7, 6), .text = unit_rows(7, 6)};
    EXPECT_NEAR(model->loss(latents).item<double>(),
                by_exponentials(latents, std::log(10.0), decoupled), 1e-5);
    // Logits up to 300, whose exponentials overflow in 32 bits.
    temperature_of(model).fill_(std::log(300.0));
    const double wanted = by_exponentials(latents, std::log(300.0), decoupled);
    EXPECT_NEAR(model->loss(latents).item<double>(), wanted, 1e-4 * wanted);
  }
}

TEST(Mulan, PartsOfABatchSeeWhatTheWholeSees) {
  torch::manual_seed(2);
  Mulan model(tiny_mulan());
  auto draws = std::make_shared<Draws>();
  model->set_draws(draws);
  const torch::Tensor sounds = torch::randn({4, 400}), tokens = torch::randint(1, 20, {4, 5});
  draws->reseed(3);
  const MulanLatents whole = model->latents(sounds, tokens);
  for (std::int64_t first : {0, 2}) {
    draws->reseed(3);
    const MulanLatents part = model->latents(sounds.narrow(0, first, 2), tokens.narrow(0, first, 2),
                                             {.first = first, .of = 4});
    EXPECT_TRUE(torch::allclose(part.audio, whole.audio.narrow(0, first, 2), 1e-5, 1e-6));
    EXPECT_TRUE(torch::allclose(part.text, whole.text.narrow(0, first, 2), 1e-5, 1e-6));
  }
  draws->reseed(4);  // the latents do depend on the random numbers
  EXPECT_FALSE(torch::allclose(model->latents(sounds, tokens).audio, whole.audio, 1e-3, 1e-3));
}

TEST(Mulan, CaptionsMayBePaddedAsYouLike) {
  torch::manual_seed(3);
  Mulan model(tiny_mulan());
  const torch::Tensor tokens = torch::randint(1, 20, {3, 5});
  const torch::Tensor padded = torch::constant_pad_nd(tokens, {0, 9});
  EXPECT_TRUE(
      torch::allclose(model->text_latents(tokens), model->text_latents(padded), 1e-5, 1e-6));
  // Empty captions are allowed.
  EXPECT_TRUE(
      model->text_latents(torch::zeros({2, 0}, torch::kInt64)).isfinite().all().item<bool>());
}

TEST(Mulan, RetrievalCountsWhatIsFound) {
  torch::manual_seed(4);
  const std::int64_t rows = 40;
  const MulanLatents latents{.audio = unit_rows(rows, 3), .text = unit_rows(rows, 3)};
  const torch::Tensor caption = torch::arange(rows) % 31;  // some captions occur twice
  for (std::int64_t within : {1, 5}) {
    std::int64_t by_text = 0, by_sound = 0;
    for (std::int64_t i = 0; i < rows; ++i) {
      auto found = [&](const torch::Tensor& from, const torch::Tensor& to) {
        std::vector<std::pair<double, std::int64_t>> order;
        for (std::int64_t j = 0; j < rows; ++j) {
          order.emplace_back(-from[i].dot(to[j]).item<double>(), j % 31);
        }
        std::ranges::sort(order);
        const auto end = order.begin() + within;
        return std::any_of(order.begin(), end, [&](auto& one) { return one.second == i % 31; });
      };
      by_text += found(latents.text, latents.audio);
      by_sound += found(latents.audio, latents.text);
    }
    const Retrieval got = retrieval(latents, caption, within);
    EXPECT_DOUBLE_EQ(got.text_to_audio, static_cast<double>(by_text) / rows);
    EXPECT_DOUBLE_EQ(got.audio_to_text, static_cast<double>(by_sound) / rows);
  }
}

// `format`: WAV format tag, 1 for integers, 3 for floating point.
void write_wav_of(const std::filesystem::path& path, int format, int bits, int channels, int rate,
                  int samples) {
  std::string data;
  for (int i = 0; i < samples * channels; ++i) {
    const double value = 0.5 * std::sin(0.07 * i);
    const auto whole = static_cast<std::int16_t>(value * 32767);
    const auto* bytes =
        format == 3 ? reinterpret_cast<const char*>(&value) : reinterpret_cast<const char*>(&whole);
    data.append(bytes, static_cast<std::size_t>(bits / 8));
  }
  auto number = [](std::int64_t value, int size) {
    return std::string(reinterpret_cast<const char*>(&value), static_cast<std::size_t>(size));
  };
  const int frame = channels * bits / 8;
  const auto size = static_cast<std::int64_t>(data.size());
  std::ofstream(path, std::ios::binary)
      << "RIFF" << number(36 + size, 4) << "WAVEfmt " << number(16, 4) << number(format, 2)
      << number(channels, 2) << number(rate, 4) << number(rate * frame, 4) << number(frame, 2)
      << number(bits, 2) << "data" << number(size, 4) << data;
}

class MulanFolder : public testing::Test {
 protected:
  void add(const std::string& stem, const std::string& caption) {
    std::ofstream(folder_ / "media" / (stem + ".txt"), std::ios::binary) << caption;
  }
  void SetUp() override {
    const auto media = folder_ / "media";
    make_sounds(media, 12);
    write_wav_of(media / "int16_stereo.wav", 1, 16, 2, 44'100, 3000);
    add("int16_stereo", "two channels");
    write_wav_of(media / "float64.wav", 3, 64, 1, 8'000, 600);
    add("float64", "sixty-four bits");
    write_wav_of(media / "short.wav", 1, 16, 1, 8'000, 9);
    add("short", "shorter than the window");
    write_wav_of(media / "long_caption.wav", 1, 16, 1, 8'000, 600);
    add("long_caption", std::string(5000, 'x'));
    write_wav_of(media / "empty_caption.wav", 1, 16, 1, 8'000, 600);
    add("empty_caption", "");
    write_wav_of(media / "utf8_bom.wav", 1, 16, 1, 8'000, 600);
    add("utf8_bom", "\xEF\xBB\xBFG\xC3\xA4nge\r\n");
    // These cannot be read.
    write_wav_of(media / "nothing.wav", 1, 16, 1, 8'000, 0);
    add("nothing", "no samples at all");
    std::ofstream(media / "corrupt.mp3") << "this is no sound";
    add("corrupt", "rubbish");
    write_wav_of(media / "latin1.wav", 1, 16, 1, 8'000, 600);
    add("latin1", "G\xE4nge");
    write_wav_of(media / "utf16.wav", 1, 16, 1, 8'000, 600);
    add("utf16", std::string("\xFF\xFEG\0e\0", 6));
    // A sound without a text, and a text without a sound.
    write_wav_of(media / "alone.wav", 1, 16, 1, 8'000, 600);
    add("lonely", "a text without a sound");
  }

  int run(const std::vector<std::string>& more) {
    const TrainerProgram program = mulan_program();
    std::vector<std::string> all = program.arguments(folder_ / "media", folder_ / "results", 12);
    all.insert(all.end(), {"--batch-size", "4", "--valid-frac", "0.15", "--save-results-every", "5",
                           "--max-error-share", "0.5"});
    for (std::size_t i = 0; i < more.size(); i += 2) {
      const auto there = std::ranges::find(all, more[i]);
      if (there == all.end()) {
        all.insert(all.end(), {more[i], more[i + 1]});
      } else {
        *std::next(there) = more[i + 1];  // another value for the same flag
      }
    }
    ChildProgram child(program.path, all, folder_ / "errors");
    return child.wait();
  }
  // The ledger's line for each file, by file name.
  std::map<std::string, std::string> ledger() const {
    std::map<std::string, std::string> found;
    std::ifstream lines(folder_ / "results" / "errors.jsonl");
    for (std::string line; std::getline(lines, line);) {
      const auto entry = nlohmann::json::parse(line);
      for (const auto& [key, value] : entry.items()) {
        if (!value.is_string()) continue;
        const std::string name = std::filesystem::path(value.get<std::string>()).filename();
        if (name.ends_with(".wav") || name.ends_with(".mp3") || name.ends_with(".txt")) {
          found[name] = line;
        }
      }
    }
    return found;
  }

  TemporaryFolder folder_;
};

TEST_F(MulanFolder, TrainsOnWhatCanBeReadAndTellsOfTheRest) {
  ASSERT_EQ(run({}), 0) << text_of(folder_ / "errors");
  const auto entries = ledger();
  const std::map<std::string, std::string> wanted{{"nothing.wav", "the sound has 0 samples"},
                                                  {"corrupt.mp3", "cannot read the mp3 header"},
                                                  {"latin1.txt", "Latin-1"},
                                                  {"utf16.txt", "UTF-16"},
                                                  {"alone.wav", "no text of the same name"},
                                                  {"lonely.txt", "without a file of the same"}};
  for (const auto& [name, reason] : wanted) {
    ASSERT_TRUE(entries.contains(name))
        << name << " in " << text_of(folder_ / "results/errors.jsonl");
    EXPECT_NE(entries.at(name).find(reason), std::string::npos) << entries.at(name);
  }
  EXPECT_EQ(entries.size(), wanted.size()) << text_of(folder_ / "results/errors.jsonl");
}

TEST_F(MulanFolder, CanRefuseLongCaptionsAndWholeSoundsThatAreTooShort) {
  ASSERT_EQ(run({"--truncate-captions", "false", "--data-max-length", "0", "--valid-frac", "0"}), 0)
      << text_of(folder_ / "errors");
  const auto entries = ledger();
  ASSERT_TRUE(entries.contains("long_caption.txt") || entries.contains("long_caption.wav"))
      << text_of(folder_ / "results/errors.jsonl");
  ASSERT_TRUE(entries.contains("short.wav")) << text_of(folder_ / "results/errors.jsonl");
  EXPECT_NE(entries.at("short.wav").find("9 samples, fewer than 84"), std::string::npos);
}

TEST_F(MulanFolder, TakesCaptionsFromATable) {
  std::ofstream table(folder_ / "captions.jsonl");
  for (int i = 0; i < 12; ++i) {
    table << c10::str(R"({"file": ")", i, R"(.wav", "words": "sound )", i, "\"}\n");
  }
  table.close();
  ASSERT_EQ(run({"--table", (folder_ / "captions.jsonl").string(), "--path-column", "file",
                 "--caption-column", "words"}),
            0)
      << text_of(folder_ / "errors");
  EXPECT_NE(text_of(folder_ / "results/retrieval.0.txt").find("<- sound "), std::string::npos);
}

TEST_F(MulanFolder, LeavesWeightsWithTheNamesOfTheTrainerInPython) {
  ASSERT_EQ(run({}), 0) << text_of(folder_ / "errors");
  const Value saved = read_checkpoint(folder_ / "results/mulan.11.pt");
  EXPECT_TRUE(saved["model"].as_dict().contains("audio.spec.window"));
  EXPECT_TRUE(saved["model"].as_dict().contains("audio.aug.0.phase_advance"));
  EXPECT_TRUE(saved["optim"].as_dict().contains("param_groups"));
  const MulanConfig config = MulanConfig::from_json(saved["config"].as_string());
  EXPECT_EQ(config.dim_latent, 6);
  EXPECT_EQ(config.text.num_tokens, 257);
}

}  // namespace
}  // namespace millrace
