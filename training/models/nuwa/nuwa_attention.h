// The attention and feed-forward layers of NUWA's transformers. Private to training/models.
#pragma once

#include "nuwa_layers.h"

#include <memory>

namespace millrace {

// Self-attention over a text, or cross-attention from a video to a text.
std::shared_ptr<NuwaPartImpl> make_text_attention(const NuwaTransformerOptions& options,
                                                  bool from_video);
// Attention from each video token to its neighbours. `layer` selects the dilation.
std::shared_ptr<NuwaPartImpl> make_nearby_attention(const NuwaTransformerOptions& options,
                                                    std::int64_t layer);
std::shared_ptr<NuwaPartImpl> make_feed_forward(const NuwaTransformerOptions& options);

}  // namespace millrace
