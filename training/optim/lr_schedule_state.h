// A warm-up and a schedule as the trainers in Python keep them in checkpoints, so that those go on
// from ours: pytorch_warmup's LinearWarmup and a scheduler of torch.optim. Ours read neither, for
// the learning rate follows from the step.
#pragma once

#include <millrace/training/checkpoint/value.h>
#include <millrace/training/optim/lr_schedule.h>
#include <millrace/training/optim/optimizer.h>

#include <cstdint>

namespace millrace {

// {"warmup_params", "last_step", "lrs"}, after `steps` steps of the optimizer.
Value warmup_state(const Schedule& schedule, const Optimizer& optimizer, std::int64_t steps);
// Of LambdaLR, LinearLR, CosineAnnealingLR or StepLR. Its base is the rate that was asked for, not
// that divided by the warm-up.
Value schedule_state(const Schedule& schedule, const Optimizer& optimizer, std::int64_t steps);

}  // namespace millrace
