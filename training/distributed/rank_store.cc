// The library millrace_ranks: a RankStore on top of c10d's TCPStore. Programs open it with dlopen
// and call only its virtual functions, so they do not link LibTorch.
#include <millrace/training/distributed/rank_store.h>

#include <chrono>
#include <exception>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

namespace millrace {

namespace {

std::vector<std::uint8_t> to_bytes(const std::string& text) {
  return {text.begin(), text.end()};
}

std::string to_text(const std::vector<std::uint8_t>& bytes) {
  return {bytes.begin(), bytes.end()};
}

c10d::TCPStoreOptions options_of(const Ranks& ranks) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(ranks.port);
  options.isServer = ranks.rank == 0 && !ranks.agent_hosts;
  options.waitWorkers = false;  // a rank that never joins must not block the others
  options.timeout = std::chrono::seconds(10);
  return options;
}

class TcpRankStore : public RankStore {
 public:
  explicit TcpRankStore(const Ranks& ranks)
      : store_(c10::make_intrusive<c10d::PrefixStore>(
            "millrace/" + ranks.scope,
            c10::make_intrusive<c10d::TCPStore>(ranks.address, options_of(ranks)))) {}

  std::string exchange(const std::string& key, const std::string& expected,
                       const std::string& desired) override {
    return to_text(store_->compareSet(key, to_bytes(expected), to_bytes(desired)));
  }
  void set(const std::string& key, const std::string& value) override {
    store_->set(key, to_bytes(value));
  }
  std::string get(const std::string& key) override {
    return store_->check({key}) ? to_text(store_->get(key)) : "";
  }

 private:
  c10::intrusive_ptr<c10d::Store> store_;
};

}  // namespace

// Methods may throw types of LibTorch; callers catch std::exception, which both sides know.
extern "C" __attribute__((visibility("default"))) RankStore* millrace_open_rank_store(
    const Ranks* ranks, std::string* error) {
  try {
    return new TcpRankStore(*ranks);
  } catch (const std::exception& exception) {
    *error = exception.what();
    return nullptr;
  }
}

}  // namespace millrace
