// Private to the loader: makes the arrays of a batch out of its loaded rows.
#pragma once

#include "row_loader.h"

namespace millrace::detail {

// Fills `data` from the rows, without those that were dropped. Throws an Error if samples cannot be
// collated or memory is over max_bytes.
void collate_batch(const LoaderParts& parts, const RowLoader& rows, BatchMemory& memory,
                   BatchData& data);
// The copies to the device that bring it what collate_batch() made.
std::vector<Transfer> plan_transfers(const LoaderParts& parts, const BatchMemory& memory,
                                     const BatchData& data);

}  // namespace millrace::detail
