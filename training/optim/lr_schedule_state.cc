#include <millrace/training/optim/lr_schedule_state.h>

#include <algorithm>

namespace millrace {

namespace {

// A list with one value per parameter group.
template <class Make>
List each_group(const Optimizer& optimizer, Make make) {
  List list;
  for (const Optimizer::Group& group : optimizer.groups()) list.items.push_back(make(group));
  return list;
}

List rates(const Optimizer& optimizer, double factor) {
  return each_group(optimizer,
                    [&](const Optimizer::Group& group) { return Value(group.lr * factor); });
}

}  // namespace

Value warmup_state(const Schedule& schedule, const Optimizer& optimizer, std::int64_t steps) {
  const std::int64_t period = std::max<std::int64_t>(schedule.options().warmup_steps, 1);
  return Dict{{"warmup_params", each_group(optimizer,
                                           [&](const Optimizer::Group&) {
                                             return Value(Dict{{"warmup_period", period}});
                                           })},
              {"last_step", steps},
              {"lrs", rates(optimizer, schedule.undampened(steps))}};
}

Value schedule_state(const Schedule& schedule, const Optimizer& optimizer, std::int64_t steps) {
  const ScheduleOptions& o = schedule.options();
  Dict state;
  switch (o.kind) {
    case ScheduleKind::constant:
      state.set("lr_lambdas", each_group(optimizer, [](const auto&) { return Value(); }));
      break;
    case ScheduleKind::linear:
      state.set("start_factor", o.start_factor);
      state.set("end_factor", o.end_factor);
      state.set("total_iters", o.steps);
      break;
    case ScheduleKind::cosine:
      state.set("T_max", o.steps);
      state.set("eta_min", o.end_factor * optimizer.lr());
      break;
    case ScheduleKind::step:
      state.set("step_size", o.step_size);
      state.set("gamma", o.gamma);
      break;
  }
  state.set("base_lrs", rates(optimizer, 1));
  state.set("last_epoch", steps);
  state.set("_step_count", steps + 1);
  state.set("_get_lr_called_within_step", false);
  state.set("_last_lr", rates(optimizer, schedule.undampened(steps)));
  return state;
}

}  // namespace millrace
