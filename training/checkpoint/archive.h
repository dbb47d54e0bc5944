// The archive of a checkpoint: a Value to the bytes of a .pt file and back, without naming files.
#pragma once

#include "zip_reader.h"
#include "zip_writer.h"

#include <millrace/training/checkpoint/value.h>

namespace millrace::detail {

// Storages go to `sink` in pieces, straight from the tensors' memory.
void write_archive(const Value& value, const ZipWriter::Sink& sink);

// Throws an Error without the path.
Value read_archive(const ZipReader& archive);

}  // namespace millrace::detail
