// The training loop and what plugs into it: stages, optimizers, checkpoints, trackers, ranks.
//
//   #include <millrace/training.h>
//
//   millrace::Value checkpoint = millrace::read_checkpoint("checkpoint.400.pt");
#pragma once

#include <millrace/training/checkpoint/checkpoint.h>
#include <millrace/training/checkpoint/tensors.h>
#include <millrace/training/checkpoint/value.h>
#include <millrace/training/checkpoint/weights.h>
#include <millrace/training/device/tensor.h>
#include <millrace/training/distributed/rank_group.h>
#include <millrace/training/loop/run_folder.h>
#include <millrace/training/loop/scheduler.h>
#include <millrace/training/loop/stage.h>
#include <millrace/training/optim/ema.h>
#include <millrace/training/optim/lr_schedule.h>
#include <millrace/training/optim/optimizer.h>
#include <millrace/training/tracking/tracker.h>
