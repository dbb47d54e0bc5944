#include "field_plan.h"

#include <millrace/pipeline/loader/loader_checks.h>

#include <string>

namespace millrace::detail {

namespace {

void set_collation(FieldPlan& plan, const Collate& policy) {
  const Field& field = plan.declared;
  std::string who = "collate: field '" + field.name + "' " + to_string(field.shape);
  require(!field.is_fixed() || policy.kind == Collate::Kind::stack,
          who + " has a fixed shape and is stacked; it takes no other collation");
  require(policy.axis < field.shape.rank(), who + " has no axis " + std::to_string(policy.axis));
  require(policy.axis < 0 || field.is_fixed() || field.shape[policy.axis] < 0,
          who + " does not vary along axis " + std::to_string(policy.axis));
  require(policy.shape.empty() || (policy.shape.is_fixed() && field.shape.admits(policy.shape)),
          who + " cannot be padded to " + to_string(policy.shape));
  plan.collate = policy;
}

void set_conversion(FieldPlan& plan, const ToFloat& conversion) {
  const Field& field = plan.declared;
  require(field.is_fixed() && field.dtype == DType::uint8,
          "to_float: field '" + field.name + "' must be uint8 of fixed shape, but is " +
              std::string(name_of(field.dtype)) + " " + to_string(field.shape));
  plan.row_shape = to_float_shape(conversion, field.shape);
  plan.dtype = DType::float32;
  plan.channels = static_cast<int>(field.shape[field.shape.rank() - 1]);
  plan.pixels = field.shape.elements() / plan.channels;
  plan.to_float = conversion;
}

// After collation and conversion are set.
void set_memory(FieldPlan& plan, bool on_device) {
  const Field& field = plan.declared;
  bool list = plan.collate.kind == Collate::Kind::list;
  plan.form = field.is_fixed() ? FieldForm::stacked : list ? FieldForm::list : FieldForm::collated;
  plan.float_on_host = plan.to_float.has_value() && !on_device;
  if (on_device) plan.shown = plan.to_float ? Place::converted : Place::device;
  if (!field.is_fixed()) return;
  plan.loaded_bytes = static_cast<std::size_t>(field.shape.elements()) * item_size(field.dtype);
  auto float_bytes = static_cast<std::size_t>(plan.row_shape.elements()) * sizeof(float);
  plan.host_bytes = plan.float_on_host ? float_bytes : plan.loaded_bytes;
  plan.device_bytes = on_device ? plan.loaded_bytes : 0;
  plan.converted_bytes = on_device && plan.to_float ? float_bytes : 0;
}

}  // namespace

std::vector<FieldPlan> plan_fields(const Schema& schema, const LoaderOptions& options) {
  std::vector<FieldPlan> plans;
  for (int i = 0; i < schema.size(); ++i) {
    plans.push_back({.field = i,
                     .declared = schema[i],
                     .row_shape = schema[i].shape,
                     .dtype = schema[i].dtype});
  }
  auto plan_of = [&](const std::string& name) -> FieldPlan& {
    return plans[static_cast<std::size_t>(schema.at(name))];
  };
  for (const auto& [name, policy] : options.collate) set_collation(plan_of(name), policy);
  for (const auto& [name, conversion] : options.to_float) set_conversion(plan_of(name), conversion);
  for (FieldPlan& plan : plans) set_memory(plan, options.device != nullptr);
  return plans;
}

}  // namespace millrace::detail
