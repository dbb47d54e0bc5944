#include <millrace/datasets/compose/collations.h>
#include <millrace/datasets/compose/field_routing.h>

#include <gtest/gtest.h>

namespace millrace {
namespace {

const Schema songs{{.name = "audio", .dtype = DType::float32, .shape = {-1}},
                   text_field("caption"),
                   {.name = "tokens", .dtype = DType::int64, .shape = {-1}}};

std::vector<Route> mulan() {
  return {
      {.to = "wavs", .from = {"audio", "wavs"}, .dtype = DType::float32, .ranks = {1, 2}},
      {.to = "raw_texts", .from = {"caption"}, .text = true, .required = false},
      {.to = "texts", .from = {"tokens"}, .dtype = DType::int64, .ranks = {1}, .required = false}};
}

std::string message(auto&& function) {
  try {
    function();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.what();
  }
  return "nothing was thrown";
}

TEST(FieldRouting, FindsFieldsByNameAndNotByPosition) {
  FieldRouting routing(mulan());
  routing.bind(songs);
  EXPECT_EQ(routing.field("wavs"), "audio");
  EXPECT_EQ(routing.field("raw_texts"), "caption");
  Schema other{{.name = "tokens", .dtype = DType::int64, .shape = {256}},
               {.name = "extra", .dtype = DType::uint8, .shape = {}},
               {.name = "wavs", .dtype = DType::float32, .shape = {2, -1}}};
  routing.bind(other);
  EXPECT_EQ(routing.field("wavs"), "wavs");
  EXPECT_EQ(routing.field("texts"), "tokens");
  EXPECT_FALSE(routing.has("raw_texts"));
  EXPECT_EQ(routing.unused(), std::vector<std::string>{"extra"});
}

TEST(FieldRouting, SaysWhatIsMissing) {
  FieldRouting routing(mulan());
  Schema none{{.name = "image", .dtype = DType::uint8, .shape = {8, 8, 3}}};
  EXPECT_EQ(message([&] { routing.bind(none); }),
            "routing: 'wavs' needs a field 'audio' or 'wavs' (float32 with 1 or 2 axes), but the "
            "data set has: image uint8 [8, 8, 3]");
  EXPECT_NE(message([&] { (void)routing.field("wavs"); }).find("no field for 'wavs'"),
            std::string::npos);
  EXPECT_NE(message([&] { (void)routing.field("waves"); }).find("never declared"),
            std::string::npos);
}

TEST(FieldRouting, SaysWhatIsOfAnotherType) {
  FieldRouting routing(mulan());
  Schema integers{{.name = "audio", .dtype = DType::int16, .shape = {-1}}};
  EXPECT_EQ(message([&] { routing.bind(integers); }),
            "routing: 'wavs' must be float32 with 1 or 2 axes, but the field 'audio' of the data "
            "set is int16 [-1]");
  Schema deep{{.name = "audio", .dtype = DType::float32, .shape = {1, 2, 3}}};
  EXPECT_NE(message([&] { routing.bind(deep); }).find("[1, 2, 3]"), std::string::npos);
  Schema text{text_field("audio")};
  EXPECT_NE(message([&] { routing.bind(text); }).find("is text"), std::string::npos);
  Schema bytes{{.name = "audio", .dtype = DType::float32, .shape = {-1}},
               {.name = "caption", .dtype = DType::uint8, .shape = {-1}}};
  EXPECT_NE(message([&] { routing.bind(bytes); }).find("must be text"), std::string::npos);
}

TEST(FieldRouting, SaysWhatIsThereTwice) {
  FieldRouting routing(mulan());
  Schema both{{.name = "audio", .dtype = DType::float32, .shape = {-1}},
              {.name = "wavs", .dtype = DType::float32, .shape = {-1}}};
  EXPECT_NE(message([&] { routing.bind(both); }).find("only one of them"), std::string::npos);
  EXPECT_NE(message([] {
              FieldRouting({{.to = "a"}, {.to = "a"}});
            }).find("declared twice"),
            std::string::npos);
  EXPECT_NE(message([] {
              FieldRouting({{.to = "a", .from = {"x"}}, {.to = "b", .from = {"x"}}});
            }).find("wanted twice"),
            std::string::npos);
}

TEST(Collations, PadMeshesWithTheirPadId) {
  Schema meshes{{.name = "vertices", .dtype = DType::float32, .shape = {-1, 3}},
                {.name = "faces", .dtype = DType::int64, .shape = {-1, 3}},
                text_field("caption")};
  Collations collations = collate_meshes(meshes, -7);
  EXPECT_EQ(collations.size(), 2U);
  EXPECT_EQ(collations.at("faces").value, -7);
  EXPECT_EQ(collations.at("vertices").value, 0);
  EXPECT_NE(message([] { (void)collate_meshes(songs); }).find("needs a field 'faces'"),
            std::string::npos);
}

TEST(Collations, CutAndPadAudioAlongTimeOnlyAndNeverCaptions) {
  for (AudioLength length : {AudioLength::longest, AudioLength::shortest}) {
    Collations mono = collate_audio(songs, length);
    EXPECT_EQ(mono.at("audio").axis, 0);
    EXPECT_FALSE(mono.contains("caption"));
    Schema stereo{{.name = "audio", .dtype = DType::float32, .shape = {2, -1}},
                  text_field("caption")};
    EXPECT_EQ(collate_audio(stereo, length).at("audio").axis, 1);
  }
  EXPECT_EQ(collate_audio(songs, AudioLength::shortest).at("audio").kind, Collate::Kind::curtail);
  // Tokens belong to the caption: padded, even where the sound is cut.
  EXPECT_EQ(collate_audio(songs, AudioLength::shortest).at("tokens").kind, Collate::Kind::pad);
}

}  // namespace
}  // namespace millrace
