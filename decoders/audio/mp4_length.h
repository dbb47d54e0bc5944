// Private: how long the sound of an MP4 track is, to the sample.
//
// Note [Edit lists]. An edit list says which part of a track is played, and so takes the encoder's
// delay and padding away, but it counts in the ticks of the film, often milliseconds. Where the
// edit ends within a tick of the track's own end, the track's own end is meant.
#pragma once

#include <millrace/decoders/container/media_input.h>

#include <cstdint>
#include <optional>

namespace millrace::detail {

// In ticks of the track; nothing where the file does not tell it (fragments, several edits).
std::optional<std::int64_t> mp4_track_length(const MediaInput& input, std::uint32_t track);

}  // namespace millrace::detail
