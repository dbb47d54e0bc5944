// Which rank a process is, from what torchrun and srun put into the environment.
#include <millrace/pipeline/base/error.h>
#include <millrace/training/distributed/rank_store.h>

#include <cstdlib>
#include <map>
#include <string>

#include <gtest/gtest.h>

namespace millrace {
namespace {

class RankEnvironment : public testing::Test {
 protected:
  void SetUp() override { clear(); }
  void TearDown() override { clear(); }

  static void clear() {
    for (const char* name :
         {"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT",
          "TORCHELASTIC_USE_AGENT_STORE", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT",
          "SLURM_PROCID", "SLURM_NTASKS", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID",
          "SLURM_STEP_NODELIST", "SLURM_JOB_ID", "SLURM_STEP_ID"}) {
      unsetenv(name);
    }
  }
  static void set(const std::map<std::string, std::string>& variables) {
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  }
};

TEST_F(RankEnvironment, SaysNothingOfAProcessThatIsAlone) {
  EXPECT_FALSE(ranks_from_environment());
  set({{"RANK", "0"}, {"WORLD_SIZE", "1"}});
  EXPECT_FALSE(ranks_from_environment());
}

TEST_F(RankEnvironment, ReadsTorchrun) {
  set({{"RANK", "5"},
       {"WORLD_SIZE", "8"},
       {"LOCAL_RANK", "1"},
       {"MASTER_ADDR", "first"},
       {"MASTER_PORT", "29501"},
       {"TORCHELASTIC_USE_AGENT_STORE", "True"},
       {"SLURM_PROCID", "3"},
       {"SLURM_STEP_NUM_TASKS", "4"}});
  const auto ranks = ranks_from_environment();
  ASSERT_TRUE(ranks);
  EXPECT_EQ(ranks->rank, 5);
  EXPECT_EQ(ranks->world, 8);
  EXPECT_EQ(ranks->local_rank, 1);
  EXPECT_EQ(ranks->address, "first");
  EXPECT_EQ(ranks->port, 29501);
  EXPECT_TRUE(ranks->agent_hosts);
}

TEST_F(RankEnvironment, ReadsSrun) {
  const std::map<std::string, std::string> hosts{{"node7", "node7"},
                                                 {"gpu[03-07,9],cpu2", "gpu03"},
                                                 {"a,b", "a"},
                                                 {"n[12]", "n12"},
                                                 {"rack[1-2]-node,x", "rack1-node"}};
  for (const auto& [list, first] : hosts) {
    set({{"SLURM_PROCID", "3"},
         {"SLURM_STEP_NUM_TASKS", "4"},
         {"SLURM_LOCALID", "1"},
         {"SLURM_STEP_NODELIST", list},
         {"SLURM_JOB_ID", "4711"},
         {"SLURM_STEP_ID", "2"}});
    const auto ranks = ranks_from_environment();
    ASSERT_TRUE(ranks);
    EXPECT_EQ(ranks->rank, 3);
    EXPECT_EQ(ranks->world, 4);
    EXPECT_EQ(ranks->local_rank, 1);
    EXPECT_EQ(ranks->address, first);
    EXPECT_FALSE(ranks->agent_hosts);
    EXPECT_GT(ranks->port, 1024);
    EXPECT_LT(ranks->port, 32768);  // where outgoing connections begin
  }
  set({{"MASTER_ADDR", "other"}, {"MASTER_PORT", "1234"}});
  EXPECT_EQ(ranks_from_environment()->address, "other");
  EXPECT_EQ(ranks_from_environment()->port, 1234);
}

TEST_F(RankEnvironment, TakesAProgramThatABatchScriptCallsForAlone) {
  set({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_JOB_ID", "4711"}});
  EXPECT_FALSE(ranks_from_environment());
}

TEST_F(RankEnvironment, RefusesWhatMakesNoSense) {
  set({{"RANK", "4"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "1"}});
  EXPECT_THROW(ranks_from_environment(), Error);
  set({{"RANK", "x"}});
  EXPECT_THROW(ranks_from_environment(), Error);
}

}  // namespace
}  // namespace millrace
