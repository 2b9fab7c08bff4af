#include "tests/fuzz/json_mutator.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace manyworlds::fuzz {

namespace {

using nlohmann::json;

void collect(json& value, std::vector<json*>& to) {
  to.push_back(&value);
  if (value.is_structured())
    for (json& inner : value) collect(inner, to);
}

json extreme(std::mt19937& random) {
  const std::vector<json> some{nullptr,
                               true,
                               false,
                               0,
                               -1,
                               1,
                               0.5,
                               1e308,
                               -1e308,
                               5e-324,
                               std::numeric_limits<std::uint64_t>::max(),
                               std::numeric_limits<std::int64_t>::min(),
                               std::uint64_t{1} << (random() % 64),
                               random() % 1000,
                               "",
                               "x",
                               "\x1b[31m\n\"\\",
                               std::string(random() % 300, 'a'),
                               json::array(),
                               json::object(),
                               json::array({1, "a", nullptr})};
  return some[random() % some.size()];
}

json nested(json inner, std::mt19937& random) {
  for (std::size_t levels = random() % 4 == 0 ? 100 : 1 + random() % 3; levels > 0; --levels)
    inner = random() % 2 == 0 ? json::array({std::move(inner)}) : json{{"x", std::move(inner)}};
  return inner;
}

void change_text(std::string& text, std::mt19937& random) {
  std::string bytes = text + std::string(16, ' ');
  bytes.resize(LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(bytes.data()), text.size(), bytes.size()));
  // A text of JSON is UTF-8; what is not is left out here and met when bytes change.
  bytes.erase(std::remove_if(bytes.begin(), bytes.end(), [](char c) { return static_cast<unsigned char>(c) > 0x7F; }),
              bytes.end());
  text = random() % 8 == 0 ? text + text : bytes;
}

void change_list(json& list, std::mt19937& random) {
  const std::size_t at = random() % (list.size() + 1);
  if (at == list.size())
    list.push_back(extreme(random));
  else if (random() % 2 == 0)
    list.erase(at);
  else
    list.push_back(json(list[at]));
}

void change_object(json& object, std::mt19937& random) {
  if (object.empty()) {
    object["x"] = extreme(random);
    return;
  }
  auto member = std::next(object.begin(), static_cast<std::ptrdiff_t>(random() % object.size()));
  const json value = *member;
  if (random() % 3 != 0) object.erase(member);
  if (random() % 2 == 0) object["x" + std::to_string(random() % 3)] = value;
}

}  // namespace

void mutate_json(json& document, std::mt19937& random) {
  std::vector<json*> all;
  collect(document, all);
  json& value = *all[random() % all.size()];
  const json& other = *all[random() % all.size()];
  switch (random() % 6) {
    case 0:
      value = extreme(random);
      break;
    case 1:
      value = nested(json(value), random);
      break;
    case 2:
      value = json(other);
      break;
    default:
      if (value.is_string())
        change_text(value.get_ref<std::string&>(), random);
      else if (value.is_array())
        change_list(value, random);
      else if (value.is_object())
        change_object(value, random);
      else if (value.is_number_integer())
        value = static_cast<std::int64_t>(value.get<std::uint64_t>() + random() % 5 - 2);  // wraps round
      else
        value = extreme(random);
  }
}

std::size_t mutate_json_text(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned seed,
                             const std::string& fresh, std::string (*sealed)(std::string)) {
  std::mt19937 random(seed);
  std::string text;
  json document = json::parse(data, data + size, nullptr, false);
  if (random() % 8 == 0) {
    size = LLVMFuzzerMutate(data, size, max_size);
    text.assign(reinterpret_cast<const char*>(data), size);
  } else {
    if (!document.is_object()) document = json::parse(fresh);
    for (std::size_t changes = 1 + random() % 3; changes > 0; --changes) mutate_json(document, random);
    text = document.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
  }
  if (sealed != nullptr) text = sealed(std::move(text));
  const std::size_t kept = std::min(text.size(), max_size);
  std::memcpy(data, text.data(), kept);
  return kept;
}

}  // namespace manyworlds::fuzz
