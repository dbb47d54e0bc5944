#include <millrace/datasets/compose/collations.h>

namespace millrace {

namespace {

void add(Collations& collations, const Schema& schema, const char* name, const Collate& policy) {
  int field = schema.find(name);
  if (field >= 0 && !schema[field].is_fixed()) collations.emplace(name, policy);
}

void add_tokens(Collations& collations, const Schema& schema, std::int64_t pad_id) {
  add(collations, schema, "tokens", Collate::pad_to_longest(0, static_cast<double>(pad_id)));
}

// Without this check, a wrong data set would give batches of lists, and a confusing error later.
void require(const Schema& schema, const char* name, const char* who) {
  if (schema.find(name) >= 0) return;
  throw Error(std::string(who) + " needs a field '" + name +
              "', but the data set has: " + to_string(schema))
      .stage("collate")
      .kind(ErrorKind::usage);
}

}  // namespace

Collations collate_meshes(const Schema& schema, std::int64_t pad_id) {
  require(schema, "faces", "collate_meshes");
  Collations collations;
  const auto pad = static_cast<double>(pad_id);
  add(collations, schema, "vertices", Collate::pad_to_longest(0));
  add(collations, schema, "faces", Collate::pad_to_longest(0, pad));
  add(collations, schema, "face_edges", Collate::pad_to_longest(0, pad));
  add_tokens(collations, schema, 0);
  return collations;
}

Collations collate_audio(const Schema& schema, AudioLength length, std::int64_t text_pad_id) {
  require(schema, "audio", "collate_audio");
  Collations collations;
  const int time = schema[schema.at("audio")].shape.rank() - 1;
  add(collations, schema, "audio",
      length == AudioLength::longest ? Collate::pad_to_longest(time)
                                     : Collate::curtail_to_shortest(time));
  add_tokens(collations, schema, text_pad_id);
  return collations;
}

Collations collate_clips(const Schema& schema, std::int64_t text_pad_id) {
  require(schema, "video", "collate_clips");
  Collations collations;
  const Shape& shape = schema[schema.at("video")].shape;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] >= 0) continue;
    // Clips of different sizes cannot be one array: pad_to_longest reports the sizes.
    add(collations, schema, "video", Collate::pad_to_longest(axis));
    break;
  }
  add_tokens(collations, schema, text_pad_id);
  return collations;
}

}  // namespace millrace
