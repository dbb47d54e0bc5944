#include "caption_reader.h"

#include <millrace/datasets/captions/tokenized_captions.h>
#include <millrace/pipeline/base/error.h>

#include <utility>

namespace millrace {

Captioned::Captioned(AnyDataset dataset, CaptionOptions captions, const std::string& text)
    : dataset_(std::move(dataset)), captions_(std::move(captions)), text_(text) {
  std::vector<Field> fields;
  bool found = false;
  std::string names;
  for (const Field& field : dataset_->schema()) {
    names.append(names.empty() ? "" : ", ").append(field.name);
    if (field.name == text) {
      found = field.text;
    } else if (field.name != "caption" && field.name != "tokens") {
      fields.push_back(field);
      kept_.push_back(field.name);
    }
  }
  if (!found) {
    throw Error("there is no text '" + text + "' among its fields: " + names)
        .kind(ErrorKind::usage);
  }
  add_caption_fields(fields, captions_);
  schema_ = Schema(std::move(fields));
}

Status Captioned::load(std::int64_t index, const LoadContext& context, Sample& sample) const {
  Sample inner(dataset_->schema());
  if (Status status = dataset_->load(index, context, inner); !status.ok()) return status;
  for (const std::string& name : kept_) sample.set(name, inner[name]);
  return set_caption(captions_, inner.text(text_), sample);
}

}  // namespace millrace
