// Runs a program as a child process, alone or as one of several ranks.
#pragma once

#include "tests/reference.h"

#include <millrace/decoders/image/image_write.h>
#include <millrace/pipeline/base/random.h>

#include <csignal>
#include <map>
#include <string>
#include <vector>

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace millrace {

inline void make_pictures(const std::filesystem::path& folder, int count) {
  std::filesystem::create_directories(folder);
  for (int i = 0; i < count; ++i) {
    Array picture = Array::empty(DType::uint8, {20, 24, 3});
    Random random(1, 0, i, "picture");
    for (std::uint8_t& value : picture.as<std::uint8_t>())
      value = static_cast<std::uint8_t>(random());
    std::vector<std::byte> png;
    ASSERT_TRUE(encode_png(picture, {}, png).ok());
    write_bytes(folder / (std::to_string(i) + ".png"), png);
  }
}

inline std::string text_of(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

class ChildProgram {
 public:
  // `max_file`: limit of a file's size in bytes; a write beyond it fails, as on a full disk. 0:
  // none.
  ChildProgram(const std::string& program, const std::vector<std::string>& arguments,
               const std::filesystem::path& errors,
               const std::map<std::string, std::string>& environment = {}, std::size_t max_file = 0)
      : errors_(errors) {
    std::vector<std::string> all{program};
    all.insert(all.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& argument : all) argv.push_back(argument.data());
    argv.push_back(nullptr);
    child_ = fork();
    if (child_ != 0) return;
    for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
    const int file = open(errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    const int nothing = open("/dev/null", O_WRONLY);
    dup2(nothing, 1);
    dup2(file, 2);
    if (max_file > 0) {
      const rlimit limit{max_file, max_file};
      setrlimit(RLIMIT_FSIZE, &limit);
      std::signal(SIGXFSZ, SIG_IGN);
    }
    execv(argv[0], argv.data());
    _exit(127);
  }
  ~ChildProgram() {
    if (child_ <= 0) return;
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  ChildProgram(ChildProgram&& other) noexcept
      : errors_(std::move(other.errors_)), child_(std::exchange(other.child_, -1)) {}
  ChildProgram& operator=(ChildProgram&&) = delete;

  void send(int signal) const { kill(child_, signal); }
  pid_t id() const { return child_; }
  // The exit code, or 128 + the signal that killed it.
  int wait() {
    int status = 0;
    waitpid(child_, &status, 0);
    child_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  std::string errors() const { return text_of(errors_); }

 private:
  std::filesystem::path errors_;
  pid_t child_ = -1;
};

// A free port outside the ephemeral range, so that no outgoing connection takes it.
inline int free_port() {
  for (int attempt = 0; attempt < 200; ++attempt) {
    const int port = 20'000 + (static_cast<int>(getpid()) * 31 + attempt * 97) % 12'000;
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_ANY);
    const bool free = ::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    ::close(socket);
    if (free) return port;
  }
  return 0;
}

// The environment that torchrun sets, but with the store's server in rank 0.
inline std::map<std::string, std::string> rank_environment(int rank, int world, int port) {
  return {{"RANK", std::to_string(rank)},
          {"WORLD_SIZE", std::to_string(world)},
          {"LOCAL_RANK", std::to_string(rank)},
          {"MASTER_ADDR", "127.0.0.1"},
          {"MASTER_PORT", std::to_string(port)}};
}

}  // namespace millrace
