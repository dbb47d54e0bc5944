#include <millrace/datasets/captions/caption_reader.h>
#include <millrace/datasets/compose/audio_text_pairs.h>
#include <millrace/datasets/compose/field_routing.h>
#include <millrace/pipeline/data/map.h>

#include <algorithm>

namespace millrace {

using namespace detail;

namespace {

FieldRouting routing_of(const Schema& schema, const AudioTextOptions& options) {
  FieldRouting routing({{.to = "wavs",
                         .from = {"audio", "wavs", "wav"},
                         .dtype = DType::float32,
                         .ranks = {options.spectrograms ? 2 : 1}},
                        {.to = "raw_texts",
                         .from = {"caption", "raw_texts", "text"},
                         .text = true,
                         .required = false},
                        {.to = "texts",
                         .from = {"tokens", "texts"},
                         .dtype = DType::int64,
                         .ranks = {1},
                         .required = false}});
  routing.bind(schema);
  if (!routing.has("raw_texts") && !routing.has("texts")) {
    throw Error(
        "the data set has no text for its sounds: neither a field 'caption', 'raw_texts' or "
        "'text' (text) nor 'tokens' or 'texts' (int64 with 1 axis), but: " +
        to_string(schema))
        .stage("routing")
        .kind(ErrorKind::usage);
  }
  if (routing.has("raw_texts") && !options.captions.tokenizer) {
    throw Error("AudioTextPairs: captions need a tokenizer").kind(ErrorKind::usage);
  }
  return routing;
}

Schema schema_of(const Schema& from, const FieldRouting& routing, const AudioTextOptions& options) {
  Shape shape = from[from.find(routing.field("wavs"))].shape;
  if (options.samples > 0 && !options.spectrograms) shape = {options.samples};
  std::vector<Field> fields = {{.name = "audio", .dtype = DType::float32, .shape = shape}};
  CaptionOptions captions = options.captions;
  if (!captions.tokenizer) captions.tokenizer = byte_tokenizer();  // only to add the field "tokens"
  captions.pad = false;
  add_caption_fields(fields, captions);
  return Schema(std::move(fields));
}

void set_sound(const Array& sound, const AudioTextOptions& options, const LoadContext& context,
               Sample& out) {
  const std::int64_t length = sound.shape()[options.spectrograms ? options.times : 0];
  if (length < options.min_samples) {
    const bool times = options.spectrograms;
    throw Error(std::string(times ? "the spectrogram has " : "the sound has ") +
                std::to_string(length) + (times ? " times, fewer than " : " samples, fewer than ") +
                std::to_string(options.min_samples))
        .stage("audio");
  }
  if (options.samples == 0 || options.spectrograms) {
    const bool varies = !out.schema()[out.schema().find("audio")].is_fixed();
    const Array& to = varies ? out.resize("audio", sound.shape()) : out.out("audio");
    std::ranges::copy(sound.as<const float>(), to.as<float>().begin());
    return;
  }
  const std::int64_t room = length - options.samples;
  std::int64_t start = 0;
  if (room > 0 && options.window == AudioWindow::random) {
    start = context.random("window").below(room + 1);
  }
  const auto from = sound.as<const float>().subspan(
      static_cast<std::size_t>(start), static_cast<std::size_t>(std::min(length, options.samples)));
  const auto to = out.out("audio").as<float>();
  std::ranges::fill(std::ranges::copy(from, to.begin()).out, to.end(), 0.0F);
}

// Copies the data set's own token ids without the padding at the end.
void set_tokens(const Array& tokens, const CaptionOptions& captions, Sample& out) {
  auto ids = tokens.as<const std::int64_t>();
  while (!ids.empty() && ids.back() == captions.pad_id) ids = ids.first(ids.size() - 1);
  if (static_cast<std::int64_t>(ids.size()) > captions.max_tokens) {
    if (!captions.truncate) {
      throw Error("the text has " + std::to_string(ids.size()) + " tokens, more than max_tokens (" +
                  std::to_string(captions.max_tokens) + ")")
          .stage("text");
    }
    ids = ids.first(static_cast<std::size_t>(captions.max_tokens));
  }
  const Array& to = out.resize("tokens", {static_cast<std::int64_t>(ids.size())});
  std::ranges::copy(ids, to.as<std::int64_t>().begin());
  out.set_text("caption", "");
}

Mapped pairs_of(AnyDataset dataset, const AudioTextOptions& options) {
  const FieldRouting routing = routing_of(dataset->schema(), options);
  const Schema schema = schema_of(dataset->schema(), routing, options);
  return map(std::move(dataset), schema,
             [routing, options](const Sample& in, Sample& out, const LoadContext& context) {
               set_sound(in[routing.field("wavs")], options, context, out);
               if (!routing.has("raw_texts")) {
                 return set_tokens(in[routing.field("texts")], options.captions, out);
               }
               const std::string_view text = in.text(routing.field("raw_texts"));
               if (Status status = set_caption(options.captions, text, out); !status.ok()) {
                 throw status.error();
               }
             });
}

}  // namespace

AudioTextPairs::AudioTextPairs(AnyDataset dataset, const AudioTextOptions& options)
    : Adapter(pairs_of(std::move(dataset), options)) {}

}  // namespace millrace
