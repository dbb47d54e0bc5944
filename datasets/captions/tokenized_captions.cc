#include "caption_reader.h"

#include <millrace/datasets/captions/tokenized_captions.h>
#include <millrace/pipeline/base/error.h>

#include <utility>

namespace millrace {

using namespace detail;

TokenizedCaptions::TokenizedCaptions(AnyDataset dataset, CaptionOptions captions,
                                     const std::string& text)
    : Adapter(std::move(dataset)), captions_(std::move(captions)), text_(text) {
  std::vector<Field> fields;
  bool found = false;
  std::string names;
  for (const Field& field : inner().schema()) {
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

Status TokenizedCaptions::load(std::int64_t index, const LoadContext& context,
                               Sample& sample) const {
  Sample from(inner().schema());
  if (Status status = inner().load(index, context, from); !status.ok()) return status;
  for (const std::string& name : kept_) sample.set(name, from[name]);
  return set_caption(captions_, from.text(text_), sample);
}

}  // namespace millrace
