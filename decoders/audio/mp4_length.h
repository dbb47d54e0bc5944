// Private: the exact length of an MP4 audio track in samples.
//
// Note [Edit lists]. An edit list says which part of a track is played; it removes the encoder's
// delay and padding. But it counts in ticks of the movie, often milliseconds. If the edit ends
// within one tick of the end of the track, we take the end of the track.
#pragma once

#include <millrace/decoders/container/media_input.h>

#include <cstdint>
#include <optional>

namespace millrace::detail {

// In ticks of the track; nothing if the file does not state it (fragments, several edits).
std::optional<std::int64_t> mp4_track_length(const MediaInput& input, std::uint32_t track);

}  // namespace millrace::detail
