// Finds the rank of this process from the environment, and opens the library for the rank store.
#include "tools/cli/dynamic_library.h"

#include <millrace/pipeline/base/error.h>
#include <millrace/training/distributed/rank_store.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace millrace {

namespace {

[[noreturn]] void refuse(const std::string& reason) {
  throw Error(reason).stage("ranks").kind(ErrorKind::usage);
}

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

int number(const char* name, int low, int high) {
  std::string_view text = variable(name);
  int value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < low || value > high) {
    refuse("the environment says " + std::string(name) + "=" + std::string(text) +
           ", but it must be a number from " + std::to_string(low) + " to " + std::to_string(high));
  }
  return value;
}

void* open_module() {
  static void* module = nullptr;
  if (module != nullptr) return module;
  setenv("TORCH_CPP_LOG_LEVEL", "ERROR", 0);  // we report a lost store ourselves, in one line
  module = open_library("libmillrace_ranks.so");
  if (module != nullptr) return module;
  refuse(
      "this build cannot share work between ranks (MILLRACE_TRAINING was off); use --shard i/n and "
      "unset WORLD_SIZE");
}

// The first of SLURM's list of hosts: "gpu[03-07,9],cpu2" gives "gpu03".
std::string first_host(std::string_view list) {
  const std::size_t end = list.find_first_of("[,");
  std::string host(list.substr(0, end));
  if (end == std::string_view::npos || list[end] == ',') return host;
  const std::size_t stop = list.find_first_of("-,]", end);
  host.append(list.substr(end + 1, stop - end - 1));
  const std::size_t close = list.find(']', end);
  if (close != std::string_view::npos) {  // "rack[1-2]-node": the name goes on behind the bracket
    host.append(list.substr(close + 1, list.find(',', close) - close - 1));
  }
  return host;
}

// Only srun sets SLURM_STEP_NUM_TASKS: a program that a batch script calls directly is alone.
std::optional<Ranks> ranks_of_srun() {
  if (variable("SLURM_STEP_NUM_TASKS").empty() || variable("SLURM_PROCID").empty()) {
    return std::nullopt;
  }
  const int world = number("SLURM_STEP_NUM_TASKS", 1, 1 << 20);
  if (world == 1) return std::nullopt;
  Ranks ranks{.rank = number("SLURM_PROCID", 0, world - 1), .world = world};
  if (!variable("SLURM_LOCALID").empty()) ranks.local_rank = number("SLURM_LOCALID", 0, world - 1);
  ranks.address = variable("MASTER_ADDR");
  if (ranks.address.empty()) ranks.address = first_host(variable("SLURM_STEP_NODELIST"));
  if (ranks.address.empty()) refuse("SLURM_STEP_NODELIST is empty, and MASTER_ADDR is not set");
  const std::string job(variable("SLURM_JOB_ID")), step(variable("SLURM_STEP_ID"));
  ranks.scope = job + "." + step;
  // Jobs that share a machine must not use the same port.
  const auto spread =
      std::strtoul(job.c_str(), nullptr, 10) * 7 + std::strtoul(step.c_str(), nullptr, 10);
  ranks.port = variable("MASTER_PORT").empty() ? static_cast<int>(20'000 + spread % 12'000)
                                               : number("MASTER_PORT", 1, 65535);
  return ranks;
}

}  // namespace

std::optional<Ranks> ranks_from_environment() {
  if (variable("WORLD_SIZE").empty() || variable("RANK").empty()) return ranks_of_srun();
  int world = number("WORLD_SIZE", 1, 1 << 20);
  if (world == 1) return std::nullopt;
  Ranks ranks{.rank = number("RANK", 0, world - 1), .world = world};
  if (variable("MASTER_ADDR").empty() || variable("MASTER_PORT").empty()) {
    refuse("there are several ranks (WORLD_SIZE=" + std::to_string(world) +
           "), but MASTER_ADDR and MASTER_PORT do not say where they meet; start them with "
           "torchrun --no-python, or unset WORLD_SIZE and use --shard i/n");
  }
  ranks.address = variable("MASTER_ADDR");
  ranks.port = number("MASTER_PORT", 1, 65535);
  if (!variable("LOCAL_RANK").empty()) ranks.local_rank = number("LOCAL_RANK", 0, world - 1);
  ranks.agent_hosts = variable("TORCHELASTIC_USE_AGENT_STORE") == "True";
  ranks.scope = std::string(variable("TORCHELASTIC_RUN_ID")) + "/" +
                std::string(variable("TORCHELASTIC_RESTART_COUNT"));
  return ranks;
}

bool store_answers(const Ranks& ranks) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (getaddrinfo(ranks.address.c_str(), std::to_string(ranks.port).c_str(), &hints, &found) != 0) {
    return false;
  }
  bool answers = false;
  for (const addrinfo* at = found; at != nullptr && !answers; at = at->ai_next) {
    int socket = ::socket(at->ai_family, at->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (socket < 0) continue;
    if (::connect(socket, at->ai_addr, at->ai_addrlen) == 0) {
      answers = true;
    } else if (errno == EINPROGRESS) {
      pollfd waiting{.fd = socket, .events = POLLOUT, .revents = 0};
      int problem = 1;
      socklen_t size = sizeof problem;
      answers = ::poll(&waiting, 1, 1000) == 1 &&
                getsockopt(socket, SOL_SOCKET, SO_ERROR, &problem, &size) == 0 && problem == 0;
    }
    ::close(socket);
  }
  freeaddrinfo(found);
  return answers;
}

void prepare_rank_store() {
  open_module();
}

std::unique_ptr<RankStore> open_rank_store(const Ranks& ranks) {
  void* module = open_module();
  using Open = RankStore* (*)(const Ranks*, std::string*);
  auto open = reinterpret_cast<Open>(find_function(module, "millrace_open_rank_store"));
  std::string error;
  std::unique_ptr<RankStore> store(open(&ranks, &error));
  if (store == nullptr) {
    throw Error("cannot reach the store at " + ranks.address + ":" + std::to_string(ranks.port) +
                " (" + error.substr(0, error.find('\n')) + ")")
        .stage("ranks");
  }
  return store;
}

}  // namespace millrace
