// Runs ranks as threads of one process. Each joins over loopback, as a process would.
#include "tests/training/programs/child_program.h"

#include <millrace/pipeline/base/error.h>
#include <millrace/training/device/torch_api.h>
#include <millrace/training/distributed/gradient_sync.h>
#include <millrace/training/distributed/rank_group.h>
#include <millrace/training/models/quantizers/vector_quantizer.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <thread>

namespace millrace {
namespace {

void as_ranks(int world, const std::function<void(RankGroup&)>& body) {
  static std::atomic<int> used{0};
  const Ranks base{.world = world, .port = free_port(), .scope = std::to_string(used++)};
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world; ++rank) {
    threads.emplace_back([&, rank] {
      Ranks mine = base;
      mine.rank = rank;
      try {
        RankGroup group(mine);
        body(group);
        group.barrier();
      } catch (const std::exception& error) {
        ADD_FAILURE() << "rank " << rank << ": " << error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

torch::Tensor batch_of(std::int64_t number) {
  return torch::arange(12, torch::kFloat32)
      .reshape({4, 3})
      .mul(0.1)
      .add(0.3 * static_cast<double>(number));
}

TEST(RankGroup, SpeaksWithOneVoice) {
  as_ranks(3, [](RankGroup& ranks) {
    const int rank = ranks.rank();
    torch::Tensor flags = torch::full({2}, rank == 0, torch::kBool);
    torch::Tensor view = torch::full({4, 3}, rank + 7.0).t();  // not contiguous
    ranks.broadcast(NamedTensors{{"flags", flags}, {"view", view}});
    EXPECT_TRUE(flags.all().item<bool>());
    EXPECT_TRUE(view.eq(7).all().item<bool>());
    EXPECT_EQ(ranks.broadcast(rank == 0 ? std::string("checkpoint.7.pt") : "other"),
              "checkpoint.7.pt");
    EXPECT_EQ(ranks.broadcast(std::string()), "");
    EXPECT_EQ(ranks.largest(rank == 1 ? 15 : 0), 15);
    Logs logs{{"loss", rank + 1.0}, {"other", 0.5}};
    ranks.average(logs);
    EXPECT_DOUBLE_EQ(logs[0].second, 2);
    EXPECT_DOUBLE_EQ(logs[1].second, 0.5);
    const auto all = ranks.gather(torch::full({2}, rank, torch::kUInt8));
    for (int other = 0; other < 3; ++other) EXPECT_EQ(all[other][1].item<int>(), other);
  });
}

// Reference: the gradients of the mean of all ranks' losses, computed in one process.
TEST(GradientSync, AddsUpAndOverlapsWithBackward) {
  auto make = [] {
    torch::manual_seed(3);
    return torch::nn::Sequential(torch::nn::Linear(3, 40), torch::nn::Tanh(),
                                 torch::nn::Linear(40, 40), torch::nn::Tanh(),
                                 torch::nn::Linear(40, 1));
  };
  constexpr int world = 3, micro = 2;
  std::mutex alone;
  torch::nn::Sequential reference = make();
  for (int i = 0; i < world * micro; ++i) {
    (reference->forward(batch_of(i)).square().mean() / (world * micro)).backward();
  }
  as_ranks(world, [&](RankGroup& ranks) {
    torch::nn::Sequential model{nullptr};
    {
      const std::lock_guard lock(alone);  // the threads share torch's random generator
      model = make();
    }
    GradientSync sync(ranks, model->parameters(), {.first_bucket_bytes = 1, .bucket_bytes = 1000});
    EXPECT_GT(sync.buckets(), 3U);
    for (int step = 0; step < 2; ++step) {
      for (int i = 0; i < micro; ++i) {
        if (i + 1 == micro) sync.begin();
        (model->forward(batch_of(i * world + ranks.rank())).square().mean() / (world * micro))
            .backward();
      }
      EXPECT_EQ(sync.sent_early(), sync.buckets());
      sync.finish();
      for (std::size_t p = 0; p < model->parameters().size(); ++p) {
        EXPECT_TRUE(torch::allclose(model->parameters()[p].grad(),
                                    reference->parameters()[p].grad(), 1e-5, 1e-7));
        model->parameters()[p].mutable_grad().reset();
      }
    }
  });
}

TEST(GradientSync, TakesWhatIsUnusedOnSomeRanksAsZeroAndLeavesWhatIsUnusedOnAll) {
  as_ranks(2, [](RankGroup& ranks) {
    torch::Tensor everywhere = torch::ones({2}).requires_grad_();
    torch::Tensor here_or_there = torch::ones({2}).requires_grad_();
    torch::Tensor nowhere = torch::ones({2}).requires_grad_();
    torch::Tensor earlier = torch::ones({2}).requires_grad_();
    GradientSync sync(ranks, {everywhere, here_or_there, nowhere, earlier});
    (earlier * 3).sum().backward();  // a micro-batch before the last one
    sync.begin();
    torch::Tensor loss = everywhere.sum() * (ranks.rank() + 1.0);
    if (ranks.rank() == 1) loss = loss + here_or_there.sum() * 4;
    loss.backward();
    sync.finish();
    EXPECT_TRUE(everywhere.grad().eq(3).all().item<bool>());
    EXPECT_TRUE(here_or_there.grad().eq(4).all().item<bool>());
    EXPECT_TRUE(earlier.grad().eq(6).all().item<bool>());
    EXPECT_FALSE(nowhere.grad().defined());
  });
}

// As in the Python package, a codebook's EMA is over the features of all ranks.
TEST(Codebook, FollowsTheFeaturesOfAllRanks) {
  for (bool cosine : {false, true}) {
    torch::manual_seed(1);
    const torch::Tensor features = torch::randn({2, 4, 3, 3});
    const VectorQuantizerOptions options{.dim = 4, .codebook_size = 6, .use_cosine_sim = cosine};
    VectorQuantizer alone(options);
    const torch::Tensor codes = alone->codebook()->codes().clone();
    std::vector<VectorQuantizer> shared{VectorQuantizer(options), VectorQuantizer(options)};
    for (VectorQuantizer& one : shared) {
      for (auto& buffer : one->named_buffers()) {
        torch::NoGradGuard no_grad;
        buffer.value().copy_(*alone->named_buffers().find(buffer.key()));
      }
    }
    alone->forward(features);
    as_ranks(2, [&](RankGroup& ranks) {
      const int rank = ranks.rank();
      VectorQuantizer& mine = shared[static_cast<std::size_t>(rank)];
      mine->codebook()->ranks = {
          .rank = rank, .world = 2, .sum = [&](torch::Tensor& tensor) { ranks.sum(tensor); }};
      mine->forward(features.narrow(0, rank, 1));
    });
    EXPECT_FALSE(torch::equal(alone->codebook()->codes(), codes));
    for (VectorQuantizer& one : shared) {
      EXPECT_TRUE(
          torch::allclose(one->codebook()->codes(), alone->codebook()->codes(), 1e-5, 1e-6));
    }
  }
}

// The initial codes and the replacements of dead codes are also chosen from the features of all
// ranks, even if the ranks have different numbers of rows.
TEST(Codebook, StartsAndReplacesAsOneProcessWouldThatHasAll) {
  for (std::int64_t codes : {5, 40}) {  // fewer and more codes than features
    torch::manual_seed(1);
    const torch::Tensor features = torch::randn({3, 4, 3, 4});
    const VectorQuantizerOptions options{
        .dim = 4, .codebook_size = codes, .kmeans_init = true, .threshold_ema_dead_code = 4};
    auto run = [&](const torch::Tensor& some, const CodebookRanks& ranks) {
      VectorQuantizer quantizer(options);
      quantizer->codebook()->ranks = ranks;
      quantizer->codebook()->draws->reseed(7);
      for (int i = 0; i < 3; ++i) quantizer->forward(some * (i + 1));
      return quantizer->codebook()->codes().clone();
    };
    const torch::Tensor alone = run(features, {});
    std::vector<torch::Tensor> shared(2);
    as_ranks(2, [&](RankGroup& ranks) {
      const int rank = ranks.rank();
      shared[static_cast<std::size_t>(rank)] =
          run(rank == 0 ? features.narrow(0, 0, 1) : features.narrow(0, 1, 2),
              {.rank = rank, .world = 2, .sum = [&](torch::Tensor& t) { ranks.sum(t); }});
    });
    EXPECT_TRUE(torch::equal(shared[0], shared[1]));
    EXPECT_TRUE(torch::allclose(shared[0], alone, 1e-5, 1e-6)) << codes;
  }
}

TEST(RankGroup, TellsWhyARankEnded) {
  const Ranks base{.world = 2, .port = free_port(), .scope = "end"};
  std::thread other([base] {
    Ranks mine = base;
    mine.rank = 1;
    RankGroup group(mine);
    group.fail("the disk is full");
  });
  RankGroup group(base);
  try {
    group.barrier();
    ADD_FAILURE() << "the other rank did not come to the barrier";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("rank 1 has failed: the disk is full"),
              std::string::npos)
        << error.what();
  }
  other.join();
}

TEST(RankGroup, NamesTheRankThatDidNotCome) {
  try {
    RankGroup group({.world = 2, .port = free_port(), .scope = "alone"},
                    {.join_timeout = std::chrono::seconds(1)});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("rank 1 of 2 did not come within 1 s"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace millrace
