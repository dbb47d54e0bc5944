// The state_dicts of pytorch_warmup's LinearWarmup and of torch.optim's schedulers, so that Python
// trainers can resume from a Millrace checkpoint. Millrace does not read them back: it computes the
// learning rate from the step.
#pragma once

#include <millrace/training/checkpoint/value.h>
#include <millrace/training/optim/lr_schedule.h>
#include <millrace/training/optim/optimizer.h>

#include <cstdint>

namespace millrace {

// {"warmup_params", "last_step", "lrs"}, after `steps` steps of the optimizer.
Value warmup_state(const Schedule& schedule, const Optimizer& optimizer, std::int64_t steps);
// The state_dict of LambdaLR, LinearLR, CosineAnnealingLR or StepLR. "base_lrs" are the optimizer's
// configured learning rates, without warm-up.
Value schedule_state(const Schedule& schedule, const Optimizer& optimizer, std::int64_t steps);

}  // namespace millrace
