// preprocess: turns a folder of media into a cache that numpy, pyarrow and the trainers open at
// once.
#include "tools/cli/command_line.h"
#include "tools/preprocess/job.h"

#include <millrace/pipeline/base/log.h>

#include <algorithm>

namespace {

using namespace millrace;

constexpr const char* examples = R"(
Examples:
  preprocess images photos/ --out photos.npy --size 256
  preprocess videos clips/ --out clips.arrow --frames 17 --size 128 --fps 8
  preprocess gifs gifs/ --out gifs.arrow                        # gif/txt pairs by name
  preprocess meshes chairs/ --out chairs.arrow --max-faces 800
  preprocess audio sounds/ --out sounds.arrow --rate 24000 --seconds 4 --mono
  preprocess text captions/ --out captions.npy --tokenizer bytes --max-length 256
  preprocess tokens clips/ --model codebook.npy --out tokens.npy

  preprocess images photos/ --out photos.arrow --split train=0.95,valid=0.05
  preprocess images photos/ --out photos.arrow --shard $SLURM_ARRAY_TASK_ID/16
  torchrun --no-python --nproc-per-node 8 preprocess videos clips/ --out clips.arrow

Killed? Run the same command again: it continues from its finished shards. Then look at the result:
  inspect photos.npy --verify --sheet photos.png
`preprocess images --help` shows the options of one medium.
)";

}  // namespace

int main(int argc, char** argv) {
  CommandLine line("preprocess",
                   "Turns a folder of media into a cache that numpy, pyarrow, HF datasets, polars, "
                   "DuckDB and the trainers open at once.",
                   examples);
  std::unique_ptr<Medium> media[] = {images_medium(), videos_medium(), gifs_medium(),
                                     meshes_medium(), audio_medium(),  text_medium(),
                                     tokens_medium()};
  RunOptions options;
  for (auto& medium : media) {
    const Options flags = line.subcommand(medium->name(), medium->about(), medium->examples());
    medium->declare(flags);
    declare_run_options(flags, options);
  }
  return line.run(argc, argv, [&] {
    if (options.quiet) set_log_level(LogLevel::warning);
    auto pool = std::make_shared<Pool>(options.jobs);
    auto chosen = std::ranges::find_if(
        media, [&](const auto& medium) { return medium->name() == line.command(); });
    Job job = (*chosen)->make(options, pool);
    return run_job(job, options, pool);
  });
}
