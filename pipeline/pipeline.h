// Umbrella header of pipeline/: the loader and what goes into it (data sets, splits, mixtures,
// samplers, batches).
//
//   millrace::Loader loader(dataset, {.batch_size = 32, .shuffle = true});
//   std::int64_t samples = 0;
//   for (const millrace::Batch& batch : loader) samples += batch.size();
#pragma once

#include <millrace/pipeline/base/error.h>
#include <millrace/pipeline/base/log.h>
#include <millrace/pipeline/base/pool.h>
#include <millrace/pipeline/base/random.h>
#include <millrace/pipeline/data/batch.h>
#include <millrace/pipeline/data/dataset.h>
#include <millrace/pipeline/data/map.h>
#include <millrace/pipeline/data/mixture.h>
#include <millrace/pipeline/data/subset.h>
#include <millrace/pipeline/loader/loader.h>
#include <millrace/pipeline/order/sampler.h>
