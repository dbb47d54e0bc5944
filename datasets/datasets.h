// Every data set and the loader: include <millrace/datasets.h> to read media without LibTorch.
//
//   millrace::VideoFolder clips("clips", {.frames = 17, .size = {128, 128}});
//   millrace::Loader loader(clips, {.batch_size = 4, .shuffle = true});
#pragma once

#include <millrace/datasets/arrays/memmap.h>
#include <millrace/datasets/arrays/moving_mnist.h>
#include <millrace/datasets/arrow/arrow_dataset.h>
#include <millrace/datasets/caches/cache_info.h>
#include <millrace/datasets/caches/cache_writer.h>
#include <millrace/datasets/captions/tokenized_captions.h>
#include <millrace/datasets/compose/audio_text_pairs.h>
#include <millrace/datasets/compose/cached.h>
#include <millrace/datasets/compose/collations.h>
#include <millrace/datasets/compose/generated.h>
#include <millrace/datasets/folders/audio_folder.h>
#include <millrace/datasets/folders/gif_text_folder.h>
#include <millrace/datasets/folders/image_folder.h>
#include <millrace/datasets/folders/mesh_folder.h>
#include <millrace/datasets/folders/video_folder.h>
#include <millrace/datasets/mesh/mesh_data.h>
#include <millrace/datasets/tokens/token_memmap.h>
#include <millrace/pipeline.h>
