// The parts of NUWA's transformers. Private to training/models.
#pragma once

#include "nuwa_layers.h"

#include <memory>

namespace millrace {

// To the other words of a text, or from a video to a text.
std::shared_ptr<NuwaPartImpl> make_text_attention(const NuwaTransformerOptions& options,
                                                  bool from_video);
// From the tokens of a video to their neighbours. `layer` chooses the dilation.
std::shared_ptr<NuwaPartImpl> make_nearby_attention(const NuwaTransformerOptions& options,
                                                    std::int64_t layer);
std::shared_ptr<NuwaPartImpl> make_feed_forward(const NuwaTransformerOptions& options);

}  // namespace millrace
