// Ready values for LoaderOptions::collate, by kind of data. Fields that a data set does not have
// are not in the map.
//
//   Schema songs{{.name = "audio", .dtype = DType::float32, .shape = {-1}}};
//   Collations collate = collate_audio(songs, AudioLength::shortest);
//
// Captions are never cut or padded: Batch::texts() returns them unchanged.
#pragma once

#include <millrace/pipeline/data/schema.h>
#include <millrace/pipeline/loader/collate.h>

#include <cstdint>
#include <map>
#include <string>

namespace millrace {

using Collations = std::map<std::string, Collate>;

// Pads vertices and tokens with 0, faces and face_edges with `pad_id`, which must not be an index.
Collations collate_meshes(const Schema& schema, std::int64_t pad_id = -1);

enum class AudioLength {
  longest,   // shorter sounds are padded with silence
  shortest,  // longer sounds are cut
};
// Pads or cuts along time only, for any number of channels; pads tokens with `text_pad_id`.
Collations collate_audio(const Schema& schema, AudioLength length = AudioLength::longest,
                         std::int64_t text_pad_id = 0);

// Pads tokens to the longest caption of the batch, and clips with a variable number of frames to
// the longest clip, with black frames at the end.
Collations collate_clips(const Schema& schema, std::int64_t text_pad_id = 0);

}  // namespace millrace
