// A key-value store shared by the ranks of a job, implemented with c10d's TCPStore. The
// implementation is a separate library, millrace_ranks, which programs without LibTorch open with
// dlopen. This header does not depend on LibTorch.
//
//   std::unique_ptr<RankStore> store = open_rank_store(*ranks_from_environment());
//   if (store->exchange("shard 7", "", "rank 2") == "rank 2") work_on(7);
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace millrace {

// The process's rank, as torchrun, srun and others describe it in the environment.
struct Ranks {
  int rank = 0;
  int world = 1;
  int local_rank = 0;  // rank within the machine; selects the GPU
  std::string address = "127.0.0.1";
  int port = 29500;
  bool agent_hosts = false;  // torchrun's agent runs the store's server; otherwise rank 0 does
  std::string scope{};       // key prefix that separates this start from restarts of the same job
};

// Reads RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT and torchrun's own variables, or SLURM's in a
// step that srun started. Returns nothing if the job has a single process. Throws an Error of kind
// usage if a variable is missing or invalid.
std::optional<Ranks> ranks_from_environment();

// Thread-safe. All calls throw a std::exception if the store cannot be reached any more.
class RankStore {
 public:
  virtual ~RankStore() = default;
  // Compare-and-set: stores `desired` if the value is `expected` (empty: if the key has no value).
  // Returns the value after the call.
  virtual std::string exchange(const std::string& key, const std::string& expected,
                               const std::string& desired) = 0;
  virtual void set(const std::string& key, const std::string& value) = 0;
  // Returns an empty string if the key has no value. Does not wait for one.
  virtual std::string get(const std::string& key) = 0;
};

// Returns whether a server listens at the store's address. Waits at most a second.
bool store_answers(const Ranks& ranks);

// Loads millrace_ranks in advance: that takes half a second.
void prepare_rank_store();
// Connects to the store. Throws an Error if the build has no millrace_ranks or the store cannot be
// reached.
std::unique_ptr<RankStore> open_rank_store(const Ranks& ranks);

}  // namespace millrace
