#include <millrace/pipeline/base/error.h>
#include <millrace/training/checkpoint/value.h>

namespace millrace {

Dict::Dict(std::initializer_list<std::pair<Value, Value>> entries) {
  for (const auto& [key, value] : entries) set(key, value);
}

Value& Dict::set(Value key, Value value) {
  const Value* there = nullptr;
  if (key.is<std::string>()) there = find(std::string_view(key.as_string()));
  if (key.is<std::int64_t>()) there = find(key.as_int());
  if (there != nullptr) {
    auto& mine = const_cast<Value&>(*there);  // NOLINT: an entry of this very dictionary
    mine = std::move(value);
    return mine;
  }
  if (key.is<std::string>()) by_name_.emplace(key.as_string(), entries_.size());
  if (key.is<std::int64_t>()) by_number_.emplace(key.as_int(), entries_.size());
  entries_.emplace_back(std::move(key), std::move(value));
  return entries_.back().second;
}

const Value* Dict::find(std::string_view key) const {
  auto found = by_name_.find(std::string(key));
  return found == by_name_.end() ? nullptr : &entries_[found->second].second;
}

const Value* Dict::find(std::int64_t key) const {
  auto found = by_number_.find(key);
  return found == by_number_.end() ? nullptr : &entries_[found->second].second;
}

const Value& Dict::at(std::string_view key) const {
  if (const Value* found = find(key)) return *found;
  std::string there;
  for (std::size_t i = 0; i < entries_.size() && i < 8; ++i) {
    if (!entries_[i].first.is<std::string>()) continue;
    if (!there.empty()) there.append(", ");
    there.append(entries_[i].first.as_string());
  }
  if (entries_.size() > 8) there.append(", ...");
  throw Error("there is no '" + std::string(key) + "' among the " +
              std::to_string(entries_.size()) + " entries (" + there + ")");
}

std::size_t Dict::size() const {
  return entries_.size();
}

Dict::Entries::const_iterator Dict::begin() const {
  return entries_.begin();
}

Dict::Entries::const_iterator Dict::end() const {
  return entries_.end();
}

const char* Value::kind() const {
  static constexpr const char* names[] = {"None",     "a bool",      "an integer", "a float",
                                          "a string", "bytes",       "a tensor",   "a list",
                                          "a tuple",  "a dictionary"};
  return names[data_.index()];
}

void Value::is_not(const char* wanted) const {
  throw Error(std::string("expected ") + wanted + ", found " + kind());
}

bool Value::as_bool() const {
  if (const auto* value = std::get_if<bool>(&data_)) return *value;
  is_not("a bool");
}

std::int64_t Value::as_int() const {
  if (const auto* value = std::get_if<std::int64_t>(&data_)) return *value;
  is_not("an integer");
}

double Value::as_double() const {
  if (const auto* value = std::get_if<double>(&data_)) return *value;
  if (const auto* value = std::get_if<std::int64_t>(&data_)) return static_cast<double>(*value);
  is_not("a number");
}

const std::string& Value::as_string() const {
  if (const auto* value = std::get_if<std::string>(&data_)) return *value;
  is_not("a string");
}

const std::string& Value::as_bytes() const {
  if (const auto* value = std::get_if<PickleBytes>(&data_)) return value->data;
  is_not("bytes");
}

const StoredTensor& Value::as_stored_tensor() const {
  if (const auto* value = std::get_if<StoredTensor>(&data_)) return *value;
  is_not("a tensor");
}

const Dict& Value::as_dict() const {
  if (const auto* value = std::get_if<Dict>(&data_)) return *value;
  is_not("a dictionary");
}

const std::vector<Value>& Value::as_list() const {
  if (const auto* value = std::get_if<List>(&data_)) return value->items;
  if (const auto* value = std::get_if<Tuple>(&data_)) return value->items;
  is_not("a list");
}

}  // namespace millrace
