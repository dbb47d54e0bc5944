// Umbrella header of decoders/: decoders and encoders of every medium.
//
//   millrace::ImageInfo info;
//   millrace::Status status = millrace::probe_image(bytes, info);
#pragma once

#include <millrace/decoders/audio/audio.h>
#include <millrace/decoders/gif/gif.h>
#include <millrace/decoders/gif/gif_write.h>
#include <millrace/decoders/image/image.h>
#include <millrace/decoders/image/image_transform.h>
#include <millrace/decoders/image/image_write.h>
#include <millrace/decoders/mesh/face_edges.h>
#include <millrace/decoders/mesh/mesh.h>
#include <millrace/decoders/mesh/mesh_write.h>
#include <millrace/decoders/resize/resize.h>
#include <millrace/decoders/text/text.h>
#include <millrace/decoders/text/tokenizer.h>
#include <millrace/decoders/video/video.h>
