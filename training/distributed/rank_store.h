// What the ranks of one job have in common: small values under names, in c10d's TCPStore. The
// implementation is a library of its own, millrace_ranks, opened at run time by programs that are
// to start without LibTorch; this header shows nothing of it.
//
//   std::unique_ptr<RankStore> store = open_rank_store(*ranks_from_environment());
//   if (store->exchange("shard 7", "", "rank 2") == "rank 2") work_on(7);
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace millrace {

// As torchrun, srun and others put it into the environment.
struct Ranks {
  int rank = 0;
  int world = 1;
  int local_rank = 0;  // among those on the same machine: which GPU is its own
  std::string address = "127.0.0.1";
  int port = 29500;
  bool agent_hosts = false;  // torchrun's agent has the store; otherwise rank 0 has
  std::string scope{};       // keys of an earlier start of the same job are not ours
};

// RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT, and torchrun's own; or, in a step that srun started,
// SLURM's; nothing if there is one rank or none. Throws an Error of kind usage if they make no
// sense.
std::optional<Ranks> ranks_from_environment();

// All calls throw an Error when the store is gone. Thread-safe.
class RankStore {
 public:
  virtual ~RankStore() = default;
  // Sets `desired` if the value is `expected` (empty: if there is none); tells what it is then.
  virtual std::string exchange(const std::string& key, const std::string& expected,
                               const std::string& desired) = 0;
  virtual void set(const std::string& key, const std::string& value) = 0;
  // Empty if there is none; never waits for one.
  virtual std::string get(const std::string& key) = 0;
};

// True if somebody listens there now. Waits for at most a second.
bool store_answers(const Ranks& ranks);

// Opens millrace_ranks, which takes half a second, so that connecting takes none.
void prepare_rank_store();
// Connects. Throws if the build has none, or the store cannot be reached.
std::unique_ptr<RankStore> open_rank_store(const Ranks& ranks);

}  // namespace millrace
