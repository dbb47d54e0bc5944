#include <millrace/training/device/torch_setup.h>

#include <array>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace millrace {
namespace {

constexpr unsigned request_tile_permission = 0x1023;  // ARCH_REQ_XCOMP_PERM

TEST(TorchSetup, LimitsOnednnOnlyWhereTheTilesAreRefused) {
  EXPECT_EQ(detail::onednn_limit(AmxTiles::absent, nullptr), "");
  EXPECT_EQ(detail::onednn_limit(AmxTiles::granted, nullptr), "");
  EXPECT_EQ(detail::onednn_limit(AmxTiles::refused, nullptr), "AVX512_CORE_FP16");
  EXPECT_EQ(detail::onednn_limit(AmxTiles::refused, "AVX2"), "") << "the user's own limit stays";
}

TEST(TorchSetup, FindsTheTilesThatTheKernelLists) {
  std::ifstream in("/proc/cpuinfo");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const bool listed = text.find(" amx_tile") != std::string::npos;
  EXPECT_EQ(amx_tiles() != AmxTiles::absent, listed);
}

// Runs a program whose request for tile registers the kernel answers with `answer`; gives back what
// waitpid() says.
int run_with_answer(unsigned answer, const std::vector<std::string>& command) {
  const pid_t child = fork();
  if (child == 0) {
    std::array filter{
        sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_arch_prctl, 0, 3),
        sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args)),
        sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, request_tile_permission, 0, 1),
        sock_filter BPF_STMT(BPF_RET | BPF_K, answer),
        sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const sock_fprog program{.len = filter.size(), .filter = filter.data()};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
    std::vector<char*> arguments;
    for (const std::string& one : command) arguments.push_back(const_cast<char*>(one.c_str()));
    arguments.push_back(nullptr);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

// A program that only links Millrace::training and calls nothing of it, this one, asks before
// main(); so does a training program when it opens its library.
class TorchSetupOf : public ::testing::TestWithParam<std::vector<std::string>> {
 protected:
  std::vector<std::string> command() const {
    std::vector<std::string> all = GetParam();
    if (all[0].empty()) all[0] = std::filesystem::read_symlink("/proc/self/exe").string();
    return all;
  }
};

TEST_P(TorchSetupOf, AsksTheKernelForTheTiles) {
  const int status = run_with_answer(SECCOMP_RET_KILL_PROCESS, command());
  ASSERT_TRUE(WIFSIGNALED(status)) << "it never asked";
  EXPECT_EQ(WTERMSIG(status), SIGSYS);
}

TEST_P(TorchSetupOf, GoesOnWhereTheKernelRefuses) {
  const int status = run_with_answer(SECCOMP_RET_ERRNO | 1, command());
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_LE(WEXITSTATUS(status), 2);
}

INSTANTIATE_TEST_SUITE_P(Programs, TorchSetupOf,
                         ::testing::Values(std::vector<std::string>{"", "--gtest_list_tests"},
                                           std::vector<std::string>{
                                               MILLRACE_TRAIN_VQGAN, "/nonexistent", "--dim", "16",
                                               "--image-size", "32", "--batch-size", "1",
                                               "--num-train-steps", "1", "--results-folder",
                                               "/nonexistent/results"}));

}  // namespace
}  // namespace millrace
