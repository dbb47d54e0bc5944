// How batches of each kind are put together: ready maps for LoaderOptions::collate. A field that a
// data set does not have is not in the map, so nothing has to be taken out by hand.
//
//   Loader loader(meshes, {.batch_size = 16, .collate = collate_meshes(meshes.schema())});
//   Loader loader(songs, {.batch_size = 8,
//                         .collate = collate_audio(songs.schema(), AudioLength::shortest)});
//
// Captions are never cut or padded: Batch::texts() has them as they are.
#pragma once

#include <millrace/pipeline/data/schema.h>
#include <millrace/pipeline/loader/collate.h>

#include <cstdint>
#include <map>
#include <string>

namespace millrace {

using Collations = std::map<std::string, Collate>;

// Vertices are padded with 0; faces, face_edges with `pad_id`, which is no index; tokens with 0.
Collations collate_meshes(const Schema& schema, std::int64_t pad_id = -1);

enum class AudioLength {
  longest,   // shorter ones get silence at the end
  shortest,  // longer ones are cut
};
// Along time only, whatever the number of channels; tokens are padded with `text_pad_id`.
Collations collate_audio(const Schema& schema, AudioLength length = AudioLength::longest,
                         std::int64_t text_pad_id = 0);

// Tokens of captions are padded to the longest in the batch; clips of all their frames likewise,
// with black frames at the end.
Collations collate_clips(const Schema& schema, std::int64_t text_pad_id = 0);

}  // namespace millrace
