#include "rank_watch.h"

#include <millrace/pipeline/base/error.h>
#include <millrace/training/device/torch_api.h>
#include <millrace/training/distributed/rank_group.h>

#include <cstdlib>
#include <cstring>

#include <c10/util/Logging.h>
#include <c10/util/StringUtil.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

namespace millrace {

namespace {

// The first sentence of an exception's text, without the source location that LibTorch puts first.
std::string symptom_of(const std::exception& error) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  std::string text = torch_error ? torch_error->what_without_backtrace() : error.what();
  text = text.substr(0, text.find('\n'));
  const std::size_t location_end = text.starts_with("[/") ? text.find("] ") : std::string::npos;
  if (location_end != std::string::npos) text.erase(0, location_end + 2);
  return text.substr(0, text.find(". "));
}

Error rank_error(const std::string& reason) {
  return Error(reason).stage("ranks");
}

c10::intrusive_ptr<c10d::Store> connect(const Ranks& ranks, bool host,
                                        std::chrono::milliseconds timeout) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(ranks.port);
  options.isServer = host;
  options.waitWorkers = false;  // RankGroup waits for each rank itself, to name a missing one
  options.timeout = timeout;
  try {
    return c10::make_intrusive<c10d::PrefixStore>(
        "millrace/train/" + ranks.scope,
        c10::make_intrusive<c10d::TCPStore>(ranks.address, options));
  } catch (const std::exception& error) {
    throw rank_error(c10::str("rank ", ranks.rank, " cannot reach the store at ", ranks.address,
                              ":", ranks.port, " (", symptom_of(error), ")"));
  }
}

bool is_loopback(const std::string& address) {
  return address == "localhost" || address == "::1" || address.starts_with("127.");
}

// The network interface for Gloo: GLOO_SOCKET_IFNAME if set; loopback if the store is there; else
// the address that the host's name resolves to.
std::shared_ptr<gloo::transport::Device> network(const Ranks& ranks) {
  using Gloo = c10d::ProcessGroupGloo;
  if (const char* interface = std::getenv("GLOO_SOCKET_IFNAME"); interface && *interface) {
    return Gloo::createDeviceForInterface(interface);
  }
  if (is_loopback(ranks.address)) return Gloo::createDeviceForHostname("127.0.0.1");
  return Gloo::createDefaultDevice();
}

}  // namespace

RankGroup::RankGroup(const Ranks& ranks, const RankGroupOptions& options)
    : ranks_(ranks), options_(options) {
  setenv("TORCH_CPP_LOG_LEVEL", "ERROR", 0);  // we report a lost rank ourselves, in one line
  c10::initLogging();
  const bool host = ranks.rank == 0 && !ranks.agent_hosts;
  store_ = connect(ranks, host, options.join_timeout);
  watch_ = std::make_unique<RankWatch>(
      connect(ranks, false, std::chrono::seconds(20)),
      RankWatchOptions{.rank = ranks.rank, .world = ranks.world, .hosts = host});
  const auto deadline = std::chrono::steady_clock::now() + options.join_timeout;
  store_->set(c10::str("here/", ranks.rank), std::vector<std::uint8_t>{1});
  for (int rank = 0; rank < ranks.world; ++rank) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    try {
      store_->wait({c10::str("here/", rank)}, std::max(left, std::chrono::milliseconds(1)));
    } catch (const std::exception&) {
      const std::string reason =
          c10::str("rank ", rank, " of ", ranks.world, " did not come within ",
                   options.join_timeout.count(), " s");
      fail(reason);
      throw rank_error(reason);
    }
  }
  try {
    control_ = make_group("control");
    gradients_ = make_group("gradients");
    if (options.accelerator != nullptr) {
      const auto join = [&](const char* name) {
        return options.accelerator->join(c10::make_intrusive<c10d::PrefixStore>(name, store_),
                                         ranks_.rank, ranks_.world, options_.timeout);
      };
      device_ = join("device");
      device_gradients_ = join("device gradients");
    }
  } catch (const std::exception& error) {
    lost(symptom_of(error));
  }
}

RankGroup::~RankGroup() {
  // Closing the connections wakes ranks that wait on them. Only then may watch_ say that this rank
  // has left.
  device_gradients_.reset();
  device_.reset();
  gradients_.reset();
  control_.reset();
}

c10::intrusive_ptr<c10d::Backend> RankGroup::make_group(const char* name) {
  auto options = c10d::ProcessGroupGloo::Options::create(options_.timeout);
  options->devices.push_back(network(ranks_));
  options->threads = 1;
  return c10::make_intrusive<c10d::ProcessGroupGloo>(
      c10::make_intrusive<c10d::PrefixStore>(name, store_), ranks_.rank, ranks_.world, options);
}

void RankGroup::lost(const std::string& symptom) {
  lost_ = true;
  throw rank_error(watch_->find_reason(symptom));
}

void RankGroup::fail(const std::string& reason) {
  if (lost_ || !watch_) return;
  watch_->publish_reason(c10::str("rank ", ranks_.rank, " has failed: ", reason));
}

c10d::Backend& RankGroup::group_of(const torch::Tensor& tensor) {
  return tensor.is_cuda() ? *device_ : *control_;
}

void RankGroup::wait(const c10::intrusive_ptr<c10d::Work>& work) {
  try {
    work->wait();
  } catch (const std::exception& error) {
    lost(symptom_of(error));
  }
}

void RankGroup::broadcast(const NamedTensors& tensors) {
  torch::NoGradGuard no_grad;
  for (const auto& [name, tensor] : tensors) {
    if (tensor.numel() == 0) continue;
    torch::Tensor dense = tensor.detach().contiguous();
    // Gloo does not support every dtype, so CPU tensors are sent as bytes.
    std::vector<torch::Tensor> sent{
        dense.is_cuda()
            ? dense
            : torch::from_blob(dense.data_ptr(), {static_cast<std::int64_t>(dense.nbytes())},
                               torch::kUInt8)};
    wait(group_of(dense).broadcast(sent));
    torch::Tensor target = tensor.detach();
    if (dense.data_ptr() != target.data_ptr()) target.copy_(dense);
  }
}

std::int64_t RankGroup::broadcast(std::int64_t value) {
  const torch::Tensor tensor = torch::tensor(value, torch::kInt64).reshape({1});
  broadcast(NamedTensors{{"value", tensor}});
  return tensor.item<std::int64_t>();
}

std::string RankGroup::broadcast(const std::string& text) {
  const std::int64_t size = broadcast(static_cast<std::int64_t>(text.size()));
  torch::Tensor bytes = torch::zeros({size}, torch::kUInt8);
  if (first()) std::memcpy(bytes.data_ptr(), text.data(), text.size());
  broadcast(NamedTensors{{"text", bytes}});
  return {static_cast<const char*>(bytes.data_ptr()), static_cast<std::size_t>(size)};
}

void RankGroup::sum(torch::Tensor& tensor) {
  std::vector<torch::Tensor> sent{tensor.contiguous()};
  wait(group_of(tensor).allreduce(sent));
  if (!sent[0].is_same(tensor)) tensor.copy_(sent[0]);
}

void RankGroup::average(Logs& logs) {
  torch::Tensor values = torch::empty({static_cast<std::int64_t>(logs.size())}, torch::kFloat64);
  auto* value = values.data_ptr<double>();
  for (std::size_t i = 0; i < logs.size(); ++i) value[i] = logs[i].second;
  sum(values);
  for (std::size_t i = 0; i < logs.size(); ++i) logs[i].second = value[i] / world();
}

std::int64_t RankGroup::largest(std::int64_t value) {
  std::vector<torch::Tensor> sent{torch::full({1}, value, torch::kInt64)};
  c10d::AllreduceOptions options;
  options.reduceOp = c10d::ReduceOp::MAX;
  wait(control_->allreduce(sent, options));
  return sent[0].item<std::int64_t>();
}

std::vector<torch::Tensor> RankGroup::gather(const torch::Tensor& tensor) {
  std::vector<torch::Tensor> sent{tensor.contiguous()};
  std::vector<std::vector<torch::Tensor>> received(1);
  for (int rank = 0; rank < world(); ++rank) received[0].push_back(torch::empty_like(sent[0]));
  wait(group_of(tensor).allgather(received, sent));
  return received[0];
}

void RankGroup::barrier() {
  largest(0);
}

void RankGroup::start(Sum& sum) {
  try {
    if (sum.tensor.is_cuda()) {
      std::vector<torch::Tensor> sent{sum.tensor};
      sum.work = device_gradients_->allreduce(sent);
      return;
    }
    // Reduce-scatter by all-to-all: part n of every rank's tensor goes to rank n, which adds the
    // parts in rank order (see Sum). The traffic equals the first half of a ring all-reduce.
    if (!sum.parts.defined()) sum.parts = torch::empty_like(sum.tensor);
    std::vector<std::int64_t> even;
    sum.work = gradients_->alltoall_base(sum.parts, sum.tensor, even, even);
  } catch (const std::exception& error) {
    lost(symptom_of(error));
  }
}

void RankGroup::add_up(Sum& sum) {
  if (sum.tensor.is_cuda()) return;
  wait(sum.work);
  torch::NoGradGuard no_grad;
  const torch::Tensor parts = sum.parts.view({world(), -1});
  torch::Tensor mine = parts[0];
  for (int rank = 1; rank < world(); ++rank) mine.add_(parts[rank]);
  try {
    sum.work = gradients_->_allgather_base(sum.tensor, mine);
  } catch (const std::exception& error) {
    lost(symptom_of(error));
  }
}

void RankGroup::finish(Sum& sum) {
  wait(sum.work);
  sum.work.reset();
}

}  // namespace millrace
